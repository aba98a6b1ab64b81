import { StopStrings } from '../../models/tokenizer/stop-strings.js';
import type { TextRequest } from '../generation/text-generation.js';
import type { ServedGenerator } from '../serving/served-model.js';
import { type JsonCounts, MAX_JSON_VALUES } from './json-size.js';
import type { ChoiceCounts } from './openai/choice-run.js';

/** What a request takes by being there: its objects, its timers, its place among the requests. */
export const REQUEST_BYTES = 16 * 1024;
/** What waits for a reader that is behind, in the stream and in the socket, besides what the engine has made. */
export const STREAM_BYTES = 128 * 1024;

/** What a byte of a body takes: as a text, the strings of its values, what a template makes of them, and that again in a helper thread. */
const PER_BODY_BYTE = 4;
/** What the parts of JSON take, as V8 keeps them: measured at 64 bytes an object, 75 to 180 a key, 32 a short string, 8 a number. */
const PER_CONTAINER = 64;
const PER_KEY = 120;
const PER_STRING = 40;
const PER_VALUE = 16;
/** What the parser makes, and what the schema makes of that. */
const COPIES_OF_VALUES = 2;

/** What a prompt token takes: in the request, in its tensor, in the message to the engine and in the engine. */
const PER_PROMPT_TOKEN = 24;
/** The tensors of one request of the engine, in both threads. */
const PER_ENGINE_REQUEST = 8 * 1024;
/** What a token of the answer takes: its id, its text, the JSON around it. */
const PER_ANSWER_TOKEN = 64;
/** What a log-prob takes: the object, what is written of it, and the text of that. */
export const PER_LOG_PROB = 256;

/** Bytes of a text of JSON whose parts are counted, from its parsing to the end of its request. */
export function bodyMemory(bytes: number, counts: JsonCounts): number {
  return textMemory(bytes) + COPIES_OF_VALUES * partsMemory(counts);
}

/** Bytes of a value that is kept, which would be so long as JSON. */
export function storedMemory(bytes: number, counts: JsonCounts): number {
  return bytes + partsMemory(counts);
}

function partsMemory({ values, containers, keys, strings }: JsonCounts): number {
  // A text that is no JSON may have any number of these; it is not parsed far.
  const most = Math.min(values, MAX_JSON_VALUES + 1);
  return (
    PER_VALUE * most +
    PER_CONTAINER * Math.min(containers, most) +
    PER_KEY * Math.min(keys, most) +
    PER_STRING * Math.min(strings, 2 * most)
  );
}

/** What a body takes at least, whatever is in it. */
export function textMemory(bytes: number): number {
  return PER_BODY_BYTE * bytes;
}

/** What the largest request that is taken may hold of its body. */
export function largestBodyMemory(maxBodyBytes: number): number {
  const values = MAX_JSON_VALUES;
  // A value with a key is no container, or its key has one the less.
  return (
    REQUEST_BYTES + bodyMemory(maxBodyBytes, { values, containers: 0, keys: values, strings: 2 * values })
  );
}

/** What a number of an embedding takes: the number, and its text in the answer. */
const PER_EMBEDDING_VALUE = 32;
/** What a token that is told of takes: its id, its text, and both in the answer. */
const PER_TOLD_TOKEN = 96;

export function embeddingsMemory(inputs: number, dimensions: number): number {
  return PER_EMBEDDING_VALUE * inputs * dimensions;
}

export function toldTokensMemory(tokens: number): number {
  return PER_TOLD_TOKEN * tokens;
}

/** A reader of events of which the longest is so many characters long. */
export function readerMemory(longestEvent: number): number {
  return STREAM_BYTES + 2 * longestEvent;
}

/** What the answers to prompts hold: the engine's requests, and all that they may say, should nobody read it before its end. */
export function answersMemory(
  model: Pick<ServedGenerator, 'fitsTogether'>,
  requests: readonly TextRequest[],
  { bestOf }: ChoiceCounts,
): number {
  return requests.reduce(
    (sum, request) => sum + inputMemory(model, request, bestOf) + outputMemory(request, bestOf),
    STREAM_BYTES,
  );
}

function inputMemory(
  model: Pick<ServedGenerator, 'fitsTogether'>,
  request: TextRequest,
  count: number,
): number {
  const { promptTokens, maxTokens, logitBias, badWords = [], stop = [], stopTokens = [], guide } = request;
  const isOne = count === 1 || (model.fitsTogether?.(count, promptTokens.length, maxTokens) ?? false);
  const words = badWords.reduce(
    (sum, word) => sum + word.length,
    StopStrings.of(stop).texts.length + stopTokens.length,
  );
  const bytes =
    PER_ENGINE_REQUEST +
    PER_PROMPT_TOKEN * (promptTokens.length + words + 2 * (logitBias?.size ?? 0)) +
    2 * (guide?.guide.length ?? 0);
  return (isOne ? 1 : count) * bytes;
}

function outputMemory(request: TextRequest, count: number): number {
  const { promptTokens, maxTokens, logProbs, contextLogProbs } = request;
  const perToken = PER_ANSWER_TOKEN + (logProbs === undefined ? 0 : PER_LOG_PROB * (1 + logProbs));
  const ofPrompt =
    contextLogProbs === undefined ? 0 : PER_LOG_PROB * (1 + contextLogProbs) * promptTokens.length;
  // Each choice says what there is to say of its prompt.
  return count * (perToken * maxTokens + ofPrompt);
}
