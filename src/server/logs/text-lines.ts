import type { DestinationStream } from 'pino';

const LEVELS: Readonly<Record<number, string>> = {
  10: 'TRACE',
  20: 'DEBUG',
  30: 'INFO',
  40: 'WARN',
  50: 'ERROR',
  60: 'FATAL',
};
/** What a terminal obeys instead of showing it, and what ends a line for some readers. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const UNPRINTABLE = /[\x00-\x1f\x7f-\x9f\u2028\u2029]/g;
/** Texts that can stand without quotation marks. */
const PLAIN = /^[^\s"=\\]+$/;

/**
 * Makes lines for people of a log's objects:
 *
 *   {"level":30,"time":"2026-01-01T00:00:00.000Z","path":"/v1/models","status":200,"msg":"request"}
 *   2026-01-01T00:00:00.000Z INFO request path=/v1/models status=200
 *
 * The stack of an error follows on lines of its own, each with four spaces in front: no text of a client can begin a line.
 */
export function textLines(target: DestinationStream): DestinationStream {
  return { write: (line) => target.write(textOf(JSON.parse(line))) };
}

function textOf({ level, time, msg, err, ...fields }: Record<string, unknown>): string {
  const { stack, message, type: _, ...more } = (err ?? {}) as Record<string, unknown>;
  const all = { ...fields, ...(message === undefined ? {} : { error: message }), ...more };
  const pairs = Object.entries(all).map(([name, value]) => ` ${printable(name)}=${valueText(value)}`);
  const head = `${time} ${LEVELS[Number(level)] ?? level} ${printable(String(msg ?? ''))}${pairs.join('')}\n`;
  if (typeof stack !== 'string') return head;
  const lines = stack.split('\n').map((line) => `    ${printable(line.trim())}\n`);
  return head + lines.join('');
}

function valueText(value: unknown): string {
  if (typeof value === 'string' && PLAIN.test(value)) return printable(value);
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return printable(JSON.stringify(value) ?? '""');
}

/** The text in one line, without what a terminal would obey. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
