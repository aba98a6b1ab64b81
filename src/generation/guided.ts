import { field, says } from '../../base/named-text.js';
import { type Guide, MAX_GUIDE_LENGTH } from '../../callbacks/guide.js';
import { GuideError } from '../../engine/guided/grammar.js';
import { lenientSchema } from '../../engine/guided/sources/lenient-schema.js';
import type { JsonValue } from '../../engine/guided/sources/schema-keywords.js';
import { leastJsonLength } from '../../models/json-units.js';
import { InvalidRequestError } from '../errors/request-errors.js';
import { checkGuideHere } from './guide-checks.js';
import { asJsonSchema, type StandardSchema } from './standard-schema.js';
import type { TextCodec } from './text-model.js';
import { guideAsFormat, type TagFormat } from './tools/guide-format.js';

/** Form that an answer must have: one of these fields. */
export interface GuidedOptions {
  /** JSON. true: any JSON object; else a JSON schema, as an object or as text, or a Standard Schema such as zod's. */
  json?: boolean | object | string | StandardSchema | undefined;
  /** With a schema as an object: leaves out what JSON Schema lets a reader ignore (see lenientSchema), and what cannot be followed. */
  isLenient?: boolean | undefined;
  /** With json: regular expression of the white space between its tokens. Default: a space at most, or a line break and an indent. */
  whitespacePattern?: string | undefined;
  /** Regular expression that the whole answer matches, in ECMAScript's syntax. */
  regex?: string | undefined;
  /** Texts of which the answer is one. */
  choice?: readonly string[] | undefined;
  /** Grammar in EBNF, as llama.cpp and vLLM take it. */
  grammar?: string | undefined;
  /** Text in which tags have a given form, as vLLM and XGrammar take it. */
  structuralTag?: object | string | undefined;
}

/** The part of a codec that checks guides. */
type GuideCodec = Pick<TextCodec, 'checkGuide'>;

/**
 * Makes the engine's guide, checked as far as that can be done without the vocabulary.
 * @param param the caller's name for the guide, for errors. @param onLeftOut is given what a lenient schema
 * loses, where it loses anything.  * @throws InvalidRequestError.
 */
export async function guideOf(
  { isLenient = false, whitespacePattern, json: schema, ...others }: GuidedOptions,
  param: string,
  codec: GuideCodec,
  onLeftOut: (leftOut: readonly string[]) => void = () => {},
): Promise<Guide> {
  const json = asJsonSchema(schema, param);
  const guided = { json, ...others };
  const wrong = Object.entries(guided).find(
    ([name, value]) => value !== undefined && !(Object.hasOwn(FORMS, name) && FORMS[name]!(value)),
  );
  if (wrong !== undefined) {
    throw new InvalidRequestError(
      says`${field(param)} has ${wrong[0]}: ${JSON.stringify(wrong[1])?.slice(0, 60)}, which is not a form of json, regex, choice, grammar or structuralTag.`,
      param,
    );
  }
  const given = Object.entries(guided).filter(([, value]) => value !== undefined && value !== false);
  if (given.length === 0 && guided.json === false) {
    throw new InvalidRequestError(
      says`${field(param)} is the schema false, which no answer fits.`,
      param,
      'invalid_guide',
    );
  }
  if (given.length !== 1) {
    const found =
      given.length === 0 ? 'none of them is given' : `${given.map(([name]) => name).join(', ')} are given`;
    throw new InvalidRequestError(
      says`${field(param)} takes one of json, regex, choice, grammar and structuralTag; ${found}.`,
      param,
    );
  }
  checkLength(given[0]![1], param);
  if (whitespacePattern !== undefined && (json === undefined || json === false)) {
    throw new InvalidRequestError(
      says`${field(param)} has a pattern of white space, which is of JSON; its form is ${given[0]![0]}.`,
      param,
    );
  }
  const form = inEnginesForm(
    isLenient && isObject(json) ? { json: lenientSchema(json as JsonValue) as object } : guided,
  );
  const guide = whitespacePattern === undefined ? form : withSpace(form, whitespacePattern, param);
  if (isLenient && isObject(json)) return possibleGuide(guide, param, codec, onLeftOut);
  await checkGuide(guide, param, codec);
  return guide;
}

/** The warning for a client whose lenient schema loses something. */
export const leftOutWarning = (leftOut: readonly string[]) =>
  `The schema of the answer is not followed ${leftOut.join('; ')}.`;

/** A format as a guide. */
export function tagGuide(format: TagFormat): Guide {
  return { type: 'structural_tag', guide: asText({ type: 'structural_tag', format }) };
}

/** The guide of a schema, or where that cannot be followed as a whole, one that follows what can be. */
async function possibleGuide(
  guide: Guide,
  param: string,
  codec: GuideCodec,
  onLeftOut: (leftOut: readonly string[]) => void,
): Promise<Guide> {
  const format = { ...guideAsFormat(guide), strict: false };
  const loose = tagGuide(format);
  const leftOut = await checkGuide(loose, param, codec);
  if (leftOut.length === 0) return guide;
  onLeftOut(leftOut);
  return loose;
}

/**
 * Checks a guide's length before anything is made of it, since a body may hold sixty times as much. @throws
 * InvalidRequestError.
 */
function checkLength(value: unknown, param: string): void {
  const isWritten = typeof value === 'string';
  const length = isWritten ? value.length : leastJsonLength(value, MAX_GUIDE_LENGTH);
  if (length <= MAX_GUIDE_LENGTH) return;
  const found = isWritten
    ? `${length} characters long`
    : `more than ${MAX_GUIDE_LENGTH} characters long as JSON`;
  const message = `The guide is ${found}; at most ${MAX_GUIDE_LENGTH} are supported.`;
  throw new InvalidRequestError(message, param, 'invalid_guide');
}

/** A guide's value as text. A number beyond those of a double stays one, which JSON would write as null: it is refused by its place. */
function asText(value: unknown): string {
  if (typeof value === 'string') return value;
  const text = JSON.stringify(value);
  if (!text.includes('null')) return text;
  const marked = JSON.stringify(value, (_, one) =>
    typeof one === 'number' && !Number.isFinite(one) ? TOO_LARGE : one,
  );
  return marked.replaceAll(`"${TOO_LARGE}"`, '1e999');
}

/** Placeholder of such a number. */
const TOO_LARGE = '\ue000too-large\ue000';

function inEnginesForm({ json, regex, choice, grammar, structuralTag }: GuidedOptions): Guide {
  if (regex !== undefined) return { type: 'regex', guide: regex };
  if (choice !== undefined) return { type: 'choice', guide: JSON.stringify(choice) };
  if (grammar !== undefined) return { type: 'ebnf_grammar', guide: grammar };
  if (structuralTag !== undefined) return { type: 'structural_tag', guide: asText(structuralTag) };
  return json === true ? { type: 'json', guide: '' } : { type: 'json_schema', guide: asText(json) };
}

/**
 * JSON with white space of a pattern. The schema may be no JSON at all, which is reported as it is without a
 * pattern.
 */
function withSpace(guide: Guide, pattern: string, param: string): Guide {
  checkLength(pattern, param);
  let format: object;
  try {
    format = { ...guideAsFormat(guide), whitespace_pattern: pattern };
  } catch {
    return guide;
  }
  return { type: 'structural_tag', guide: JSON.stringify({ type: 'structural_tag', format }) };
}

const isText = (value: unknown) => typeof value === 'string';
const isObject = (value: unknown) => typeof value === 'object' && value !== null;
const FORMS: Readonly<Record<string, (value: unknown) => boolean>> = {
  json: (value) => isText(value) || typeof value === 'boolean' || isObject(value),
  regex: isText,
  choice: Array.isArray,
  grammar: isText,
  structuralTag: (value) => isText(value) || isObject(value),
};

/** Returns sentences about what of the guide is left out. @throws InvalidRequestError where it cannot be followed */
export async function checkGuide(guide: Guide, param: string, codec: GuideCodec): Promise<readonly string[]> {
  try {
    return codec.checkGuide === undefined ? checkGuideHere(guide) : await codec.checkGuide(guide);
  } catch (error) {
    if (error instanceof GuideError) throw new InvalidRequestError(error.message, param, 'invalid_guide');
    throw error;
  }
}

/** @throws InvalidRequestError where the answer could not end once the guide is complete. */
export function checkGuideEnds(ignoresEnd: boolean, param: string): void {
  if (!ignoresEnd) return;
  throw new InvalidRequestError(
    says`${field(param)} is refused together with ignoring the model's end tokens: they say when a guided answer is complete.`,
    param,
  );
}
