import type { NamedText } from './named-text.js';
import { codeOf, retell, textOf } from './skein-error.js';

/** The parts of an error that cross from one thread or process to another: an error's class is lost on the way. */
export interface ErrorRecord {
  name: string;
  text: NamedText;
  stack?: string | undefined;
  /** Code of an error of this package; null for any other. */
  code: string | null;
  /** Fields of the class of an error of this package, such as a limit; of another one its `code` alone, since the rest may be anything. */
  held: Readonly<Record<string, unknown>>;
}

/** The record of anything thrown. */
export function recordOf(thrown: unknown): ErrorRecord {
  const code = codeOf(thrown);
  const { name, stack } = thrown instanceof Error ? thrown : { name: 'Error', stack: undefined };
  return {
    name: String(name),
    text: textOf(thrown),
    stack: typeof stack === 'string' ? stack : undefined,
    code,
    held: code === null ? systemCode(thrown) : fieldsOf(thrown as Error),
  };
}

export function errorOf({ name, text, stack, held }: ErrorRecord): Error {
  const error = Object.assign(retell(new Error(), text), held);
  for (const [field, value] of Object.entries({ name, stack }))
    Object.defineProperty(error, field, { value, configurable: true, writable: true, enumerable: false });
  return error;
}

/** Fields that can be copied to another thread or process. */
function fieldsOf(error: Error): Record<string, unknown> {
  const fields = Object.entries(error).filter(
    ([, value]) => typeof value !== 'function' && typeof value !== 'symbol',
  );
  return Object.fromEntries(fields);
}

function systemCode(thrown: unknown): { code?: string } {
  const code = (thrown as { code?: unknown } | null)?.code;
  return typeof code === 'string' ? { code } : {};
}
