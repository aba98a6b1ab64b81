import { answerSummary, answerTimings } from '../asking/answer-summary.js';
import { type Answer, type AskedMessage, ask, type Question } from '../asking/ask.js';
import type { Asker } from '../asking/asker.js';
import { settingsOfFlags } from '../asking/sampling-settings.js';
import { UsageError } from '../errors/user-errors.js';
import { AnswerPrinter } from '../terminal/answer-printer.js';
import { readerGone } from '../terminal/standard-output.js';
import { type AskingFlags, askerOf } from './asking-command.js';
import { InterruptedError, listenForInterruption, rejection } from './interruption.js';
import { readPrompt } from './run-prompt.js';

export interface RunFlags extends AskingFlags {
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
    asker = await open(signal);
    const printer = flags.json ? null : new AnswerPrinter(process.stdout);
    const answer = await ask(asker, questionOf(prompt, flags), {
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
    // The reader of stdout has gone: nobody is left to tell, and nothing went wrong.
    if (readerGone().aborted && !(error instanceof InterruptedError)) return;
    throw error;
  } finally {
    interruption.release();
    process.stdin.destroy();
    await asker?.close();
  }
}

function questionOf(prompt: string, { raw, system }: RunFlags): Question {
  if (raw) return { prompt };
  const messages: AskedMessage[] = [{ role: 'user', content: prompt }];
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
