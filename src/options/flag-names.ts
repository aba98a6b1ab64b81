import { type Name, type NamedText, option, worded } from '../../base/named-text.js';
import { retell, textOf } from '../../base/skein-error.js';
import { ParameterError } from '../../callbacks/sampling-params.js';
import { flagName, OPTIONS, type OptionName } from './table.js';

/** What the engine and the host call an option, by its plain name too. */
const CALLED = new Map<string, OptionName>(
  OPTIONS.flatMap(({ name, engine, hostField }) => {
    const field = engine && lastOf(engine.nameInErrors);
    return [name, field, hostField].flatMap((called): [string, OptionName][] =>
      called ? [[called, name]] : [],
    );
  }),
);

/** maxTokens of optionalParams.kvCacheConfig.maxTokens. */
function lastOf(path: string): string {
  return path.slice(path.lastIndexOf('.') + 1);
}

/** The plain name of an option, by what the engine or the host calls it; null for one that has none. */
export function plainNameOf(path: string): OptionName | null {
  return CALLED.get(lastOf(path)) ?? null;
}

/** `--max-batch-tokens` of maxNumTokens; null for an option that has no flag. */
export function flagOfOption(path: string): string | null {
  const name = plainNameOf(path);
  return name === null ? null : `--${flagName(name)}`;
}

/** A sentence of the engine with its options named as the flags of the server. */
export function withFlagNames(text: NamedText): string {
  return worded(text, ({ of, name }) => (of === 'option' ? flagOfOption(name) : null) ?? name);
}

/** The sentence with options named as those of Skein.load: maxBatchTokens in the place of maxNumTokens. */
export function withPlainNames(text: NamedText): NamedText {
  return typeof text === 'string'
    ? text
    : text.map((part) => (typeof part === 'string' ? part : inPlainName(part)));
}

function inPlainName(part: Name): Name {
  return part.of === 'option' ? option(plainNameOf(part.name) ?? part.name) : part;
}

/** An error of a program's call with options named as those of Skein.load. */
export function inPlainNames(error: unknown): unknown {
  if (error instanceof ParameterError) {
    const { field, kind, text } = error;
    return new ParameterError(plainNameOf(field) ?? field, withPlainNames(text), kind);
  }
  return error instanceof Error ? retell(error, withPlainNames(textOf(error))) : error;
}
