import { type Name, type NamedText, option, worded } from '../../base/named-text.js';
import { retell, textOf } from '../../base/skein-error.js';
import { ParameterError } from '../../callbacks/sampling-params.js';
import { flagName, OPTIONS, type OptionName } from './table.js';

/** Options by the names that the engine and the host use, and by their plain names. */
const CALLED = new Map<string, OptionName>();
for (const { name, engine, hostField } of OPTIONS) {
  const path = engine?.nameInErrors;
  // Two objects have a field hostCacheSize: without its object the first is meant.
  for (const called of [name, path, path && lastOf(path), hostField]) {
    if (called && !CALLED.has(called)) CALLED.set(called, name);
  }
}

/** Last part of a path: maxTokens of optionalParams.kvCacheConfig.maxTokens. */
function lastOf(path: string): string {
  return path.slice(path.lastIndexOf('.') + 1);
}

/** Plain name of an option, by the name that the engine or the host uses; null for an option without one. */
function plainNameOf(path: string): OptionName | null {
  return CALLED.get(path.replace(/^optionalParams\./, '')) ?? CALLED.get(lastOf(path)) ?? null;
}

/** Flag of an option, such as `--max-batch-tokens` of maxNumTokens; null for an option without a flag. */
export function flagOfOption(path: string): string | null {
  const name = plainNameOf(path);
  return name === null ? null : `--${flagName(name)}`;
}

/** Words a sentence of the engine, with options named as the server's flags. */
export function withFlagNames(text: NamedText): string {
  return worded(text, ({ of, name }) => (of === 'option' ? flagOfOption(name) : null) ?? name);
}

/** Renames options in a sentence to those of Skein.load: maxBatchTokens instead of maxNumTokens. */
export function withPlainNames(text: NamedText): NamedText {
  return typeof text === 'string'
    ? text
    : text.map((part) => (typeof part === 'string' ? part : inPlainName(part)));
}

function inPlainName(part: Name): Name {
  return part.of === 'option' ? option(plainNameOf(part.name) ?? part.name) : part;
}

/** Rewrites an error of a program's call, with options named as those of Skein.load. */
export function inPlainNames(error: unknown): unknown {
  if (error instanceof ParameterError) {
    const { field, kind, text } = error;
    return new ParameterError(plainNameOf(field) ?? field, withPlainNames(text), kind);
  }
  return error instanceof Error ? retell(error, withPlainNames(textOf(error))) : error;
}
