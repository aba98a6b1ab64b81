import { readFileSync } from 'node:fs';
import * as z from 'zod';
import { messageOf } from '../../base/error-text.js';
import { InputError } from '../errors.js';
import { Random } from '../random.js';
import type { Dataset, Message, Sample, Turn } from '../samples.js';
import { drawLength, type LengthOptions } from './lengths.js';

const SHUFFLE = 6;
const MAX_BYTES = 512 * 2 ** 20;

const message = z.object({ role: z.string(), content: z.string() });
const shareGptMessage = z.object({ from: z.string(), value: z.string() });
/** Schema of a line, in one of the forms of known datasets. */
const line = z.union([
  z.object({
    prompt: z.string(),
    max_tokens: z.int().positive().optional(),
    output_len: z.int().positive().optional(),
  }),
  z.object({ messages: z.array(message).min(1), max_tokens: z.int().positive().optional() }),
  z.object({ conversations: z.array(shareGptMessage).min(1) }),
  /** This form is a line of OpenAI's batches: its body is sent unchanged, but with the model of the run. */
  z.object({ body: z.record(z.string(), z.unknown()) }),
]);
type Line = z.infer<typeof line>;

export interface JsonlOptions {
  file: string;
  /** Length of answers for lines that name none; null: the server decides. */
  outputTokens: LengthOptions | null;
  /** Takes lines in an order drawn by the seed instead of the file's. */
  shuffle: boolean;
  /**
   * True where every user's message is a turn that waits for the server's answer; else the last one is sent with the
   * file's answers before it.
   */
  multiTurn: boolean;
}

/**
 * Dataset of a file with a JSON object on each line: `prompt`, `messages`, ShareGPT's `conversations`, or `body`.
 * @throws InputError naming file and line.
 */
export function jsonlDataset(options: JsonlOptions, seed: number): Dataset {
  const samples = linesOf(readDataFile(options.file)).map((text, i) => {
    const parsed = line.safeParse(parse(text, options.file, i));
    if (!parsed.success) {
      throw new InputError(
        `${options.file}, line ${i + 1}: expected an object with prompt, messages, conversations or body.`,
      );
    }
    const random = new Random(seed, SHUFFLE, i);
    const maxTokens = options.outputTokens === null ? null : drawLength(options.outputTokens, random);
    return sampleOf(parsed.data, maxTokens, options.multiTurn, `${options.file}, line ${i + 1}`);
  });
  if (samples.length === 0) throw new InputError(`${options.file} has no lines.`);
  if (options.shuffle) shuffle(samples, new Random(seed, SHUFFLE));
  return {
    description: { kind: 'jsonl', ...options, samples: samples.length },
    size: samples.length,
    sample: (index) => samples[index]!,
  };
}

/** Text of a file. @throws InputError where it cannot be read. */
export function readDataFile(file: string): string {
  try {
    const bytes = readFileSync(file);
    if (bytes.length > MAX_BYTES) throw new Error(`it has more than ${MAX_BYTES} bytes`);
    return bytes.toString('utf8').replace(/^\uFEFF/, '');
  } catch (error) {
    throw new InputError(`The data ${file} cannot be read: ${messageOf(error)}.`);
  }
}

/** Lines of a text that are not blank. */
export function linesOf(text: string): string[] {
  return text.split('\n').filter((content) => content.trim() !== '');
}

function parse(text: string, file: string, index: number): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new InputError(`${file}, line ${index + 1} is not JSON: ${messageOf(error)}.`);
  }
}

function sampleOf(data: Line, maxTokens: number | null, multiTurn: boolean, where: string): Sample {
  if ('body' in data) return { turns: [bodyTurn(data.body)] };
  if ('prompt' in data) {
    return { turns: [{ prompt: data.prompt, maxTokens: data.max_tokens ?? data.output_len ?? maxTokens }] };
  }
  const messages =
    'messages' in data
      ? data.messages
      : data.conversations.map(({ from, value }) => ({ role: shareGptRole(from), content: value }));
  const limit = ('max_tokens' in data ? data.max_tokens : undefined) ?? maxTokens;
  const turns = multiTurn ? allTurns(messages, limit) : lastTurn(messages, limit);
  if (turns.length === 0) throw new InputError(`${where}: no message is the user's.`);
  return { turns };
}

/** A turn that sends a given body. Its fields replace those of the backend; the text is for raw requests. */
function bodyTurn(body: Record<string, unknown>): Turn {
  const { model: _, stream: __, stream_options: ___, ...fields } = body;
  return { prompt: JSON.stringify(body), maxTokens: null, fields };
}

function allTurns(messages: readonly Message[], maxTokens: number | null): Turn[] {
  const turns: Turn[] = [];
  let history: Message[] = [];
  for (const message of messages) {
    if (message.role === 'user') {
      turns.push({ prompt: message.content, maxTokens, history });
      history = [];
    } else if (message.role !== 'assistant') history.push(message);
  }
  return turns;
}

function lastTurn(messages: readonly Message[], maxTokens: number | null): Turn[] {
  const last = messages.findLastIndex(({ role }) => role === 'user');
  if (last < 0) return [];
  return [{ prompt: messages[last]!.content, maxTokens, history: messages.slice(0, last) }];
}

function shareGptRole(from: string): string {
  if (from === 'human' || from === 'user') return 'user';
  return from === 'system' ? 'system' : 'assistant';
}

function shuffle<T>(items: T[], random: Random): void {
  for (let i = items.length - 1; i > 0; i--) {
    const j = random.below(i + 1);
    [items[i], items[j]] = [items[j]!, items[i]!];
  }
}
