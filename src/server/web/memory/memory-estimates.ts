import { PER_LOG_PROB } from '../../../generation/answer-memory.js';
import { type JsonCounts, MAX_JSON_VALUES } from '../bodies/json-size.js';

/** Bytes of a request by itself: its objects, its timers, its entries in tables. */
export const REQUEST_BYTES = 16 * 1024;
/** Bytes that wait for a slow reader in the stream and the socket, besides those in the engine. */
export const STREAM_BYTES = 128 * 1024;

/**
 * Bytes for each byte of a body: the text, the strings of its values, a template's output, and that again in a helper
 * thread.
 */
const PER_BODY_BYTE = 4;
/**
 * Bytes of the parts of JSON in V8: measured at 64 for an object, 75 to 180 for a key, 32 for a short string, 8 for a
 * number.
 */
const PER_CONTAINER = 64;
const PER_KEY = 120;
const PER_STRING = 40;
const PER_VALUE = 16;
/** Number of copies of a body's values: the parser's and the schema's. */
const COPIES_OF_VALUES = 2;

/** Bytes that a JSON text with these counts takes, from its parsing to the end of its request. */
export function bodyMemory(bytes: number, counts: JsonCounts): number {
  return textMemory(bytes) + COPIES_OF_VALUES * partsMemory(counts);
}

/** Bytes that a stored value takes, by the length and counts of its JSON. */
export function storedMemory(bytes: number, counts: JsonCounts): number {
  return bytes + partsMemory(counts);
}

function partsMemory({ values, containers, keys, strings }: JsonCounts): number {
  // A text that is no JSON may have any number of values, but is not parsed far.
  const most = Math.min(values, MAX_JSON_VALUES + 1);
  return (
    PER_VALUE * most +
    PER_CONTAINER * Math.min(containers, most) +
    PER_KEY * Math.min(keys, most) +
    PER_STRING * Math.min(strings, 2 * most)
  );
}

/** Least bytes that a body takes, whatever its content. */
export function textMemory(bytes: number): number {
  return PER_BODY_BYTE * bytes;
}

/** Bytes that the body of the largest accepted request may take. */
export function largestBodyMemory(maxBodyBytes: number): number {
  const values = MAX_JSON_VALUES;
  // A value with a key is no container, or its key has one the less.
  return (
    REQUEST_BYTES + bodyMemory(maxBodyBytes, { values, containers: 0, keys: values, strings: 2 * values })
  );
}

/** Bytes of a number of an embedding: the number, and its text in the answer. */
const PER_EMBEDDING_VALUE = 32;
/** Bytes of a reported token: its id, its text, and both in the answer. */
const PER_TOLD_TOKEN = 96;

export function embeddingsMemory(inputs: number, dimensions: number): number {
  return PER_EMBEDDING_VALUE * inputs * dimensions;
}

/** Bytes of a token's weight: the number and its token, and their text in the answer. */
const PER_TOKEN_WEIGHT = 160;

export function tokenWeightsMemory(tokens: number): number {
  return PER_TOKEN_WEIGHT * tokens;
}

/** Bytes of a label's score: the number, and its text in the answer, which may stand in an object with the label. */
const PER_LABEL_SCORE = 64;

export function labelScoresMemory(inputs: number, labels: readonly string[]): number {
  const ofOne = labels.reduce((sum, label) => sum + PER_LABEL_SCORE + 2 * label.length, 0);
  return inputs * ofOne;
}

export function toldTokensMemory(tokens: number): number {
  return PER_TOLD_TOKEN * tokens;
}

/** Bytes of a token's event, its ids and names included, and its share of the last events, which repeat the answer. */
const PER_KEPT_EVENT = 512;

/** Bytes of the events of a response, which are kept to be read again. @param logProbs those of a token; 0: none */
export function keptEventsMemory(tokens: number, logProbs: number): number {
  return tokens * (PER_KEPT_EVENT + 3 * PER_LOG_PROB * logProbs);
}

/** Bytes of a token of a text that is kept, sealed, sent in events and answered. */
const PER_COMPACTED_TOKEN = 64;

/** Bytes of a compaction. @param tokens most tokens of the summary and of the messages that stay */
export function compactionMemory(tokens: number): number {
  return PER_COMPACTED_TOKEN * tokens;
}

/** Bytes that a reader of events takes, by the length of the longest event. */
export function readerMemory(longestEvent: number): number {
  return STREAM_BYTES + 2 * longestEvent;
}
