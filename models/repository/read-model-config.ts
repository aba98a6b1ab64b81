import { existsSync, readFileSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type protobuf from 'protobufjs';
import { messageOf } from '../../base/error-text.js';
import { asSentence } from '../../base/sentences.js';
import type { ModelConfig } from './model-config.js';
import { ModelConfigError } from './model-config-error.js';
import { configType } from './model-config-schema.js';
import { pbtxtLines } from './pbtxt-lines.js';
import { enumProblem, readMessage } from './read-fields.js';
import { type FieldPath, fieldError, pathText, type WrittenConfig } from './written-config.js';

/** Names of the file, each for its format; one of them at most is in a model's folder. */
export const CONFIG_FILES: readonly string[] = ['config.pbtxt', 'config.json', 'config.yaml', 'config.yml'];

const MAX_BYTES = 2 ** 20;
/** Of one that a client sends: the library reads about a megabyte a second, on the thread that answers everybody. */
const MAX_SENT_BYTES = 2 ** 16;
/** Messages within messages; the schema has eight. */
const DEEPEST = 32;

/**
 * The configuration in a model's folder; null: there is none, and the backend has to tell everything.
 * @throws ModelConfigError naming file, line and field, what is expected and what was found
 */
export function readModelConfig(modelDirectory: string): WrittenConfig | null {
  const found = CONFIG_FILES.filter((name) => existsSync(join(modelDirectory, name)));
  const [name, second] = found;
  if (name === undefined) return null;
  if (second !== undefined) {
    throw new ModelConfigError(`${modelDirectory} has both ${name} and ${second}; one of them is expected.`);
  }
  const file = join(modelDirectory, name);
  return parseModelConfig(readBounded(file), file, name === 'config.pbtxt' ? 'pbtxt' : 'yaml');
}

/** A configuration that a client sends with a load, as JSON. @throws ModelConfigError */
export function parseSentConfig(text: string): WrittenConfig {
  const origin = 'the configuration of the request';
  if (text.length > MAX_SENT_BYTES) throw tooLong(origin, text.length, MAX_SENT_BYTES);
  try {
    JSON.parse(text);
  } catch (error) {
    throw new ModelConfigError(`${origin} is no JSON: ${asSentence(messageOf(error))}`);
  }
  return parseModelConfig(text, origin, 'yaml');
}

/** A configuration that is a text already. @throws ModelConfigError */
export function parseModelConfig(text: string, origin: string, format: 'pbtxt' | 'yaml'): WrittenConfig {
  if (text.length > MAX_BYTES) throw tooLong(origin, text.length);
  return format === 'pbtxt' ? fromPbtxt(text, origin) : fromYaml(text, origin);
}

function readBounded(file: string): string {
  try {
    const { size } = statSync(file);
    if (size > MAX_BYTES) throw tooLong(file, size);
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (error instanceof ModelConfigError) throw error;
    throw new ModelConfigError(`${file} cannot be read: ${messageOf(error)}`, { cause: error });
  }
}

function tooLong(origin: string, bytes: number, most = MAX_BYTES): ModelConfigError {
  return new ModelConfigError(`${origin} has ${bytes} bytes; at most ${most} are taken.`);
}

function fromPbtxt(text: string, origin: string): WrittenConfig {
  const { fromText } = createRequire(import.meta.url)('protobufjs/ext/textformat.js') as {
    fromText(type: protobuf.Type, text: string): protobuf.Message;
  };
  if (nestsDeeper(text, DEEPEST, '{<', '}>'))
    throw new ModelConfigError(`${origin} has more than ${DEEPEST} messages within messages.`);
  const type = configType();
  let fields: unknown;
  try {
    const message = fromText(type, text);
    fields = type.toObject(message, { enums: String, longs: String, defaults: false });
  } catch (error) {
    throw new ModelConfigError(`${origin}${pbtxtProblem(text, messageOf(error), type)}`, { cause: error });
  }
  const lines = pbtxtLines(text);
  return checked(fields, origin, (path) => nearestLine(path, (one) => lines.get(withoutFirst(one))));
}

/** More brackets are open at once, which are of two kinds. Said before anything that calls itself for each of them reads the text. */
function nestsDeeper(text: string, most: number, opening: string, closing: string): boolean {
  let depth = 0;
  for (const character of text) {
    if (opening.includes(character)) depth++;
    else if (closing.includes(character) && depth > 0) depth--;
    if (depth > most) return true;
  }
  return false;
}

const DEEPEST_YAML = 200;
/** Longer prefix of a line's content than DEEPEST_YAML levels take, each of which is one character or two. */
const DEEP_MARGIN = new RegExp(`^[ \\t\\-?:!&]{${2 * DEEPEST_YAML + 1}}`, 'm');

function fromYaml(text: string, origin: string): WrittenConfig {
  // Brackets in texts count too: no configuration has that many open ones.
  if (nestsDeeper(text, DEEPEST_YAML, '[{', ']}') || DEEP_MARGIN.test(text))
    throw new ModelConfigError(`${origin} is nested more than ${DEEPEST_YAML} deep.`);
  const { parseDocument, LineCounter } = createRequire(import.meta.url)('yaml') as typeof import('yaml');
  const lineCounter = new LineCounter();
  const document = parseDocument(text, {
    lineCounter,
    uniqueKeys: true,
    prettyErrors: false, // which would name the place again, and quote the text
    logLevel: 'error', // which would warn of keys that are no texts: those are refused below
  });
  const [wrong] = document.errors;
  if (wrong !== undefined) {
    const { line } = lineCounter.linePos(wrong.pos[0]);
    throw new ModelConfigError(`${origin}:${line}: ${asSentence(wrong.message)}`);
  }
  let fields: unknown;
  try {
    fields = document.toJS({ maxAliasCount: 0 });
  } catch (error) {
    throw new ModelConfigError(`${origin}: ${messageOf(error)}`, { cause: error });
  }
  return checked(fields ?? {}, origin, (path) => {
    for (let length = path.length; length > 0; length--) {
      const node = document.getIn(path.slice(0, length), true) as
        | { range?: [number, ...number[]] }
        | undefined;
      const offset = node?.range?.[0];
      if (offset !== undefined) return lineCounter.linePos(offset).line;
    }
    return null;
  });
}

/** A message that is not in a list has no index. */
const withoutFirst = (path: string) => path.replaceAll('[0]', '');

function nearestLine(path: FieldPath, lineOf: (path: string) => number | undefined): number | null {
  for (let length = path.length; length > 0; length--) {
    const line = lineOf(pathText(path.slice(0, length)));
    if (line !== undefined) return line;
  }
  return null;
}

function checked(fields: unknown, origin: string, lineOf: WrittenConfig['lineOf']): WrittenConfig {
  const config = { fields: {}, origin, lineOf };
  try {
    return { ...config, fields: readMessage(configType(), fields, []) as Partial<ModelConfig> };
  } catch (error) {
    if (!(error instanceof ModelConfigError) || error.path === null) throw error;
    if (error.path.length === 0) throw new ModelConfigError(`${origin} ${error.message}.`);
    throw fieldError(config, error.path, `${error.message}.`);
  }
}

/**
 * What the library says of a text that it does not take, as the end of an error: `:3: unknown field 'nme'.` The line comes first, where it is
 * known.
 */
function pbtxtProblem(text: string, message: string, type: protobuf.Type): string {
  const [, rest, line] = /^\.?(.*?)(?: \(line (\d+)\))?$/s.exec(message)!;
  if (line !== undefined) return `:${line}: ${rest}.`;
  const withoutComments = text.replace(/#[^\n]*/g, '');
  return wrongEnum(withoutComments, rest!, type) ?? `: ${rest}.`;
}

/** The library says of a wrong name of an enum neither where it is nor what it is. */
function wrongEnum(text: string, message: string, type: protobuf.Type): string | null {
  if (message === 'integer value expected') return quotedType(text);
  const [, owner, name] = /^([\w.]+)\.(\w+): enum value expected$/.exec(message) ?? [];
  if (owner === undefined || name === undefined) return null;
  const { resolvedType } = type.root.lookupType(owner).fields[name]!.resolve();
  if (resolvedType === null || !('values' in resolvedType)) return null;
  for (const found of text.matchAll(new RegExp(`\\b${name}\\s*:\\s*([A-Za-z_]\\w*)`, 'g'))) {
    const value = found[1]!;
    if (Object.hasOwn(resolvedType.values, value)) continue;
    return `:${lineAt(text, found.index)}: ${name} ${enumProblem(resolvedType, value)}.`;
  }
  return null;
}

function quotedType(text: string): string | null {
  const found = /\bdata_type\s*:\s*(["'])(\w*)\1/.exec(text);
  if (found === null) return null;
  return `:${lineAt(text, found.index)}: data_type is a text in quotes; ${found[2]} without them is expected.`;
}

const lineAt = (text: string, index: number) => text.slice(0, index).split('\n').length;
