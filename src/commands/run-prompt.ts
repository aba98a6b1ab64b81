import { fstatSync } from 'node:fs';
import { UsageError } from '../errors/user-errors.js';

/** Most bytes read from stdin; no model takes a longer prompt. */
const MAX_STDIN_BYTES = 16 * 2 ** 20;

/**
 * Reads the prompt: the argument, stdin, or both, the argument first. A stdin that is no pipe and no file is read only
 * where `-` asks for it.
 * @throws UsageError where there is no prompt, or it is no text.
 */
export async function readPrompt(argument: string | undefined, stdin: NodeJS.ReadStream): Promise<string> {
  const given = argument === '-' ? undefined : argument;
  const piped = argument === '-' || isPiped() ? await readText(stdin) : '';
  const prompt = [given ?? '', piped].filter((text) => text.trim() !== '').join('\n\n');
  if (prompt !== '') return prompt;
  throw new UsageError(
    'There is nothing to ask; give a text, as in skein run "Tell me a story", or pipe one in.',
  );
}

/** True where stdin is a pipe or a file; /dev/null or a terminal holds no prompt. */
function isPiped(): boolean {
  try {
    const status = fstatSync(0);
    return status.isFIFO() || status.isFile() || status.isSocket();
  } catch {
    return false; // stdin is closed
  }
}

async function readText(stdin: NodeJS.ReadStream): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stdin as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_STDIN_BYTES) {
      throw new UsageError(
        `What comes on stdin is longer than ${MAX_STDIN_BYTES / 2 ** 20} MiB; no model reads so much.`,
      );
    }
    chunks.push(chunk);
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks)).replace(/\r?\n$/, '');
  } catch {
    throw new UsageError('What comes on stdin is not UTF-8 text.');
  }
}
