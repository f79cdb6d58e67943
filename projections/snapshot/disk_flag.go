package snapshot

import (
	"maps"
	"slices"
	"time"

	"flagledger/events/rules"
)

// flagCoder codes one flag. Its rules refer to variations by their place in variations.
type flagCoder struct {
	*coder
	variations []*variation
}

// flag codes a flag without pending rules: a snapshot that has left out events is not saved.
func (c *coder) flag(f *Flag) {
	fc := flagCoder{coder: c}
	own := len(f.variations)
	if c.saving {
		fc.variations = f.allVariations()
	}
	codeNumber(c, &f.version)
	codeBytes(c, &f.defaultValue)
	codeHandle(c, &f.project)
	c.murmur(&f.salt)
	c.boolean(&f.boolean)
	codeNumber(c, &f.status)
	codeNumber(c, &f.bytes)
	codeNumber(c, &f.life)
	codeNumber(c, &own)
	codeList(c, &fc.variations, func(v **variation) {
		if !c.saving {
			*v = &variation{}
		}
		copied := **v
		c.variation(&copied)
		if !c.saving {
			**v = copied
		}
	})
	codeList(c, &f.environments, func(e *environment) {
		codeHandle(c, &e.id)
		c.boolean(&e.enabled)
		fc.targeting(&e.targeting)
	})
	if c.saving {
		return
	}
	if own < 0 || own > len(fc.variations) {
		c.fail()
		return
	}
	f.defaultValue = shared(f.defaultValue)
	f.variations = slices.Clip(fc.variations[:own])
	f.weigh()
}

// allVariations returns the flag's variations, and after them those that only rules still serve.
func (f *Flag) allVariations() []*variation {
	all := slices.Clone(f.variations)
	add := func(s *serve) {
		for _, v := range s.all() {
			if !slices.Contains(all, v) {
				all = append(all, v)
			}
		}
	}
	for _, e := range f.environments {
		if e.targeting == nil {
			continue
		}
		for i := range e.targeting.rules {
			add(&e.targeting.rules[i].serve)
		}
		if e.targeting.fallthroughServe != nil {
			add(e.targeting.fallthroughServe)
		}
	}
	return all
}

// all returns the variations that may be served.
func (s *serve) all() (list []*variation) {
	if s.variation != nil {
		list = append(list, s.variation)
	}
	if s.rollout != nil {
		for _, share := range s.rollout.shares {
			list = append(list, share.variation)
		}
	}
	return list
}

func (c *coder) murmur(h *murmur) {
	codeNumber(c, &h.state)
	codeNumber(c, &h.tail)
	codeNumber(c, &h.length)
}

func (c *coder) variation(v *variation) {
	codeText(c, &v.id)
	codeText(c, &v.name)
	codeBytes(c, &v.value)
	codeNumber(c, &v.weight)
	v.value = shared(v.value)
}

// reference codes a variation as its place.
func (c *flagCoder) reference(v **variation) {
	index := slices.Index(c.variations, *v)
	codeNumber(c.coder, &index)
	if c.saving {
		return
	}
	if index < 0 || index >= len(c.variations) {
		c.fail()
		return
	}
	*v = c.variations[index]
}

func (c *flagCoder) targeting(t **targeting) {
	var coded targeting
	has, hasFallthrough := *t != nil, false
	if has {
		coded = **t
		hasFallthrough = coded.fallthroughServe != nil
	}
	if c.boolean(&has); !has {
		return
	}
	codeList(c.coder, &coded.rules, func(r *rule) {
		codeText(c.coder, &r.id)
		codeList(c.coder, &r.conditions, c.condition)
		c.serve(&r.serve)
	})
	if c.boolean(&hasFallthrough); hasFallthrough {
		if !c.saving {
			coded.fallthroughServe = &serve{}
		}
		served := *coded.fallthroughServe
		c.serve(&served)
		if !c.saving {
			*coded.fallthroughServe = served
		}
	}
	if !c.saving {
		*t = &coded
	}
}

// What a serve is.
const (
	servesValue uint8 = iota
	servesVariation
	servesRollout
)

func (c *flagCoder) serve(s *serve) {
	kind := servesValue
	switch {
	case s.variation != nil:
		kind = servesVariation
	case s.rollout != nil:
		kind = servesRollout
	}
	codeNumber(c.coder, &kind)
	switch kind {
	case servesValue:
		codeBytes(c.coder, &s.value)
	case servesVariation:
		c.reference(&s.variation)
	case servesRollout:
		c.rollout(&s.rollout)
	default:
		c.fail()
	}
}

func (c *flagCoder) rollout(r **rollout) {
	var salt murmur
	var by string
	var shares []share
	if c.saving {
		salt, shares = (*r).salt, (*r).shares
		if (*r).by != nil {
			by = (*r).by.name
		}
	}
	c.murmur(&salt)
	codeText(c.coder, &by)
	codeList(c.coder, &shares, func(s *share) {
		c.reference(&s.variation)
		codeNumber(c.coder, &s.weight)
	})
	if c.saving {
		return
	}
	if *r = newRollout(salt, by, shares); *r == nil {
		c.fail()
	}
}

func (c *flagCoder) condition(v *condition) {
	codeText(c.coder, &v.attribute.name)
	c.boolean(&v.negate)
	c.test(&v.test)
	if !c.saving && !c.bad {
		v.attribute = newAttribute(v.attribute.name)
		v.cost = costOf(v.test)
	}
}

// The kinds of tests, as they are written.
const (
	existenceTest uint8 = iota
	membershipTest
	affixTest
	patternsTest
	numberTest
	timeTest
	versionBoundTest
	versionEqualTest
)

func (c *flagCoder) test(v *test) {
	var kind uint8
	switch (*v).(type) {
	case *in:
		kind = membershipTest
	case affix:
		kind = affixTest
	case matches:
		kind = patternsTest
	case numberBound:
		kind = numberTest
	case textBound[time.Time]:
		kind = timeTest
	case textBound[rules.SemanticVersion]:
		kind = versionBoundTest
	case *versionEqual:
		kind = versionEqualTest
	}
	codeNumber(c.coder, &kind)
	switch kind {
	case existenceTest:
		*v = exists{}
	case membershipTest:
		c.in(v)
	case affixTest:
		codeTest(v, func(t *affix) {
			codeNumber(c.coder, &t.relation)
			codeTexts(c.coder, &t.values)
		})
	case patternsTest:
		codeTest(v, func(t *matches) { codeList(c.coder, &t.patterns, c.pattern) })
	case numberTest:
		codeTest(v, func(t *numberBound) { codeBound(c.coder, &t.bound, c.number) })
	case timeTest:
		codeTest(v, func(t *textBound[time.Time]) {
			codeBound(c.coder, &t.bound, c.instant)
			t.parse = rules.ParseTime
		})
	case versionBoundTest:
		codeTest(v, func(t *textBound[rules.SemanticVersion]) {
			codeBound(c.coder, &t.bound, c.version)
			t.parse = rules.ParseSemanticVersion
		})
	case versionEqualTest:
		c.versionEqual(v)
	default:
		c.fail()
	}
}

// codeTest codes a test of a type. v belongs to nobody else: see codeList.
func codeTest[T test](v *test, code func(*T)) {
	t, _ := (*v).(T)
	code(&t)
	*v = t
}

func (c *flagCoder) in(v *test) {
	var t in
	if c.saving {
		t = *(*v).(*in)
	}
	texts, numbers := t.texts.values(), t.numbers.values()
	codeTexts(c.coder, &texts)
	codeList(c.coder, &numbers, c.number)
	for i := range t.booleans {
		c.boolean(&t.booleans[i])
	}
	if !c.saving {
		t.texts, t.numbers = newOneOf(texts), newOneOf(numbers)
		*v = &t
	}
}

func (c *flagCoder) versionEqual(v *test) {
	var texts []string
	if c.saving {
		texts = (*v).(*versionEqual).texts.values()
	}
	codeTexts(c.coder, &texts)
	if !c.saving {
		*v = &versionEqual{texts: newOneOf(texts)}
	}
}

// values returns the values of a set, in no order.
func (s *oneOf[T]) values() []T {
	if s.many != nil {
		return slices.Collect(maps.Keys(s.many))
	}
	return s.few
}

func (c *coder) number(n *Number) {
	codeNumber(c, &n.digits)
	codeText(c, &n.rest)
	codeNumber(c, &n.exponent)
	c.boolean(&n.negative)
}

func (c *coder) version(v *rules.SemanticVersion) {
	s := v.String()
	codeText(c, &s)
	if c.saving {
		return
	}
	var ok bool
	if *v, ok = rules.ParseSemanticVersion(s); !ok {
		c.fail()
	}
}

func (c *coder) pattern(p *pattern) {
	codeText(c, &p.text)
	codeNumber(c, &p.size)
}

func codeBound[T any](c *coder, b *bound[T], value func(*T)) {
	codeNumber(c, &b.sign)
	c.boolean(&b.equal)
	if c.boolean(&b.none); !b.none {
		value(&b.value)
	}
}
