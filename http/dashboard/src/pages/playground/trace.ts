import { Failure } from '../../api/failure';
import type { Place } from '../../api/client';
import { playground } from '../../words/playground';

/** An evaluation as a trace recorded it. */
export type TracedEvaluation = {
  flag: string;
  targetingKey?: string;
  place?: Place;
  revision?: string;
  variant?: string;
};

/** Parses the OpenTelemetry attributes of an evaluation: a JSON object, or a line for each attribute. Throws invalid input as a failure of the field trace. */
export function readTrace(text: string): TracedEvaluation {
  const attributes = objectOf(text) ?? linesOf(text);
  const attribute = (name: string) => attributes[`feature_flag.${name}`] || undefined;
  const flag = attribute('key');
  if (!flag) throw new Failure(422, { errors: { trace: playground.trace.noKey } });
  const [tenant, environment] = attribute('set.id')?.split('/') ?? [];
  return {
    flag,
    targetingKey: attribute('context.id'),
    place: tenant && environment ? { tenant, environment } : undefined,
    revision: attribute('version'),
    variant: attribute('result.variant'),
  };
}

function objectOf(text: string): Record<string, string> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null) return;
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, String(one)]));
  } catch {
    return;
  }
}

// Also reads the lines of a JSON object, with quotes and commas.
function linesOf(text: string): Record<string, string> {
  const attributes: Record<string, string> = {};
  for (const line of text.split('\n')) {
    const [, name, value] = /^\s*"?([\w.]+)"?\s*[:=]\s*(.*?)[\s,]*$/.exec(line) ?? [];
    if (name && value) attributes[name] = value.replace(/^"(.*)"$/, '$1');
  }
  return attributes;
}
