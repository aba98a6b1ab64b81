import { closestName } from '../../../base/did-you-mean.js';
import type { InferRequest } from '../../../callbacks/infer/infer-types.js';
import { malformed } from '../infer-failure.js';
import type { InferModel } from '../infer-model.js';

/** Names that an error lists. */
const LONGEST_NAME = 100;

/**
 * Fields of an object that may be left out, or be null. @param what the object is, as a sentence says it
 * @throws InferError for what is no object, and for an unknown field, which would have no effect
 */
export function knownFields<Name extends string>(
  body: unknown,
  what: string,
  known: readonly Name[],
): Partial<Record<Name, unknown>> {
  const fields = objectOf(body ?? {}, what);
  const other = Object.keys(fields).find((name) => !known.includes(name as Name));
  if (other === undefined) return fields as Partial<Record<Name, unknown>>;
  const meant = closestName(other, known);
  const hint = meant === null ? `${known.map((name) => `'${name}'`).join(', ')}` : `'${meant}'`;
  throw malformed(
    `${what} has a field '${other.slice(0, LONGEST_NAME)}', which is unknown: ${hint} may be meant`,
  );
}

/** @throws InferError for what is no object */
export function objectOf(value: unknown, what: string): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>;
  throw malformed(`Unable to parse ${what}: an object is expected`);
}

/**
 * A client that names an engine wants no other's answer. @throws InferError where the name would not be read
 */
export function refuseEngine(
  { config, kind }: Pick<InferModel, 'config' | 'kind'>,
  engine: string | undefined,
): void {
  if (engine === undefined || kind === 'generator') return;
  throw malformed(
    `X-Skein-Engine is for models that generate text; '${config.name}' has no engine of that name`,
  );
}

/**
 * A client that names an adapter wants other answers than it would get.
 * @throws InferError where the name would not be read
 */
export function refuseAdapter(
  { config, ignoresParameters }: Pick<InferModel, 'config' | 'ignoresParameters'>,
  { parameters }: Pick<InferRequest, 'parameters'>,
): void {
  if (ignoresParameters !== true || !Object.hasOwn(parameters, 'lora_name')) return;
  throw malformed(
    `parameter 'lora_name' is for models that generate text; '${config.name}' takes no LoRA adapters`,
  );
}
