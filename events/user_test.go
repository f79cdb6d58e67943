package events

import "testing"

func TestPlatformRolesIncludeTheLesserOnes(t *testing.T) {
	for i, role := range platformRoles {
		for j, other := range platformRoles {
			if role.Includes(other) != (i >= j) {
				t.Errorf("%q includes %q: %v", role, other, role.Includes(other))
			}
		}
		if role.Includes("root") || PlatformRole("root").Includes(role) {
			t.Errorf("%q and a role that does not exist include one another", role)
		}
	}
}
