import { fstatSync } from 'node:fs';
import type { ChatMessage, ChatTextPart } from '../../models/chat-message.js';
import { answerSummary, answerTimings } from '../asking/answer-summary.js';
import { type Answer, ask, type Question } from '../asking/ask.js';
import type { Asker } from '../asking/asker.js';
import { settingsOfFlags } from '../asking/sampling-settings.js';
import { UsageError } from '../errors/user-errors.js';
import { AnswerPrinter } from '../terminal/answer-printer.js';
import { readerGone } from '../terminal/standard-output.js';
import { type AskingFlags, askerOf } from './asking-command.js';
import { InterruptedError, listenForInterruption, rejection } from './interruption.js';
import { type AskedFiles, readFiles } from './run-files.js';

export interface RunFlags extends AskingFlags {
  file?: readonly string[];
  raw?: boolean;
  json?: boolean;
  verbose?: boolean;
}

/**
 * Runs skein run "prompt".
 * @throws UsageError, AskingError, HubError, CheckpointError, EngineError, AddonError; InterruptedError after a signal,
 * once the answer so far is written.
 */
export async function run(argument: string | undefined, flags: RunFlags): Promise<void> {
  if (flags.raw && flags.system !== undefined) {
    throw new UsageError('--system is for a chat; with --raw the prompt is all that the model sees.');
  }
  const settings = settingsOfFlags(flags);
  const open = askerOf(flags);
  const interruption = listenForInterruption();
  const signal = AbortSignal.any([interruption.signal, readerGone()]);
  let asker: Asker | null = null;
  try {
    const prompt = await Promise.race([readPrompt(argument, process.stdin), rejection(signal)]);
    const question = questionOf(prompt, await readFiles(flags.file ?? []), flags);
    asker = await open(signal);
    const printer = flags.json ? null : new AnswerPrinter(process.stdout);
    const answer = await ask(asker, question, {
      settings,
      signal,
      onText: (text, kind) => printer?.write(text, kind),
    });
    printer?.end();
    if (flags.json) process.stdout.write(`${JSON.stringify(jsonOf(asker, answer))}\n`);
    if (flags.verbose)
      process.stderr.write(`skein: ${asker.about}\nskein: ${answerSummary(answer, asker.loadMs)}\n`);
    interruption.signal.throwIfAborted();
  } catch (error) {
    // The reader of stdout has gone: there is no one to notify, and nothing went wrong.
    if (readerGone().aborted && !(error instanceof InterruptedError)) return;
    throw error;
  } finally {
    interruption.release();
    process.stdin.destroy();
    await asker?.close();
  }
}

/** Texts of files stand before the prompt, and pictures before both. @throws UsageError for pictures without a chat */
function questionOf(prompt: string, { texts, pictures }: AskedFiles, { raw, system }: RunFlags): Question {
  const text = [...texts, prompt].join('\n\n');
  if (raw && pictures.length > 0)
    throw new UsageError('--file has a picture, which is seen in a chat alone; leave out --raw.');
  if (raw) return { prompt: text };
  const parts = pictures.map((url): ChatTextPart => ({ type: 'image_url', image_url: { url } }));
  const content = parts.length === 0 ? text : [...parts, { type: 'text', text }];
  const messages: ChatMessage[] = [{ role: 'user', content }];
  if (system !== undefined) messages.unshift({ role: 'system', content: system });
  return { messages };
}

/** The object that --json prints, as the README describes it. */
function jsonOf({ model, loadMs }: Asker, answer: Answer) {
  const { text, reasoning, finishReason, seed, usage } = answer;
  return {
    model,
    text,
    ...(reasoning === '' ? {} : { reasoning }),
    finishReason,
    seed,
    usage,
    timings: answerTimings(answer, loadMs),
  };
}

/** Most bytes read from stdin; no model takes a longer prompt. */
const MAX_STDIN_BYTES = 16 * 2 ** 20;

/**
 * Reads the prompt: the argument, stdin, or both, the argument first. A stdin that is no pipe and no file is read only
 * where `-` asks for it.
 * @throws UsageError where there is no prompt, or it is no text.
 */
async function readPrompt(argument: string | undefined, stdin: NodeJS.ReadStream): Promise<string> {
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
