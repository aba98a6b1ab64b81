import { input, type NamedText, option, says } from '../../base/named-text.js';
import { counted } from '../../base/sentences.js';
import { failure, type RequestFailure } from '../../callbacks/request-failure.js';
import type { ContextLogProbs, ContextReturn } from '../../callbacks/response-batch.js';
import type { ReturnedRows, RowLogProbs } from '../packed-call/packed-batch.js';
import type { GeneratedSequence } from '../sequences/generated-sequence.js';
import type { RequestSpec } from '../sequences/request-spec.js';

/** Options of a request that concern its rows of logits. */
export type ReturnOptions = Pick<
  RequestSpec,
  | 'promptTokens'
  | 'maxNewTokens'
  | 'streaming'
  | 'returnContextLogits'
  | 'returnGenerationLogits'
  | 'returnContextLogProbs'
  | 'topContextLogProbs'
  | 'topLogProbs'
  | 'numSequences'
  | 'beams'
>;

/** See heldRows. */
const ROWS_PER_BEAM_TOKEN = 3;
/** Rows of generation logits for which memory is taken at once, if they leave with the final response. */
const ROWS_PER_PAGE = 16;
const BYTES_PER_LOGIT = Float32Array.BYTES_PER_ELEMENT;
/** Bytes of a token and its log-prob. */
const BYTES_PER_TOP_LOG_PROB = 8;
/** Number of a token's top log-probs that are too few to be counted. */
const UNCOUNTED_TOP_LOG_PROBS = 20;

/** True if the request wants more from its rows than tokens and their log-probs. */
export function returnsRows(options: ReturnOptions): boolean {
  return options.returnContextLogits || options.returnGenerationLogits || options.returnContextLogProbs;
}

/**
 * Most rows of logits that a request holds at once: generated rows that are streamed leave one by one. Beams keep theirs until the
 * end: those of the beams that go on, as many of ended ones, and the copies in a response.
 */
function heldRows(options: ReturnOptions): { context: number; generation: number } {
  const { beams, streaming, maxNewTokens } = options;
  const ofOne = streaming ? 1 : maxNewTokens;
  const generation = beams === null ? ofOne : ROWS_PER_BEAM_TOKEN * beams.width * maxNewTokens;
  return {
    context: options.returnContextLogits ? options.promptTokens.length : 0,
    generation: options.returnGenerationLogits ? generation : 0,
  };
}

/** Most top log-probs that a request holds at once for all its tokens, counting only those above the uncounted ones. */
function heldTopLogProbs(options: ReturnOptions): { context: number; generation: number } {
  const counted = (numTop: number) => Math.max(0, numTop - UNCOUNTED_TOP_LOG_PROBS);
  return {
    context: counted(options.topContextLogProbs) * options.promptTokens.length,
    generation: counted(options.topLogProbs) * options.maxNewTokens * options.numSequences,
  };
}

/**
 * Collects the rows that a request asked to have returned, in memory that is the request's own and leaves with its
 * responses. Each row is collected once: rows that are computed again after a pause are not written again.
 *
 *   prompt p0 p1 p2 p3 | g4 g5        context logits of p0..p3, generation logits of g4, g5
 *   row    0  1  2  3    4            row t holds the logits of token t + 1: g4 is drawn from row 3
 *   chunks [0 1] [2 3]                each asks for its rows in place, after those that are there
 *   paused, resumed [0 1 2 3 4]       asks for nothing of the prompt again
 */
export class ReturnedLogits {
  readonly vocabSize: number;
  readonly #options: ReturnOptions;
  #context: ContextReturn | null = null;
  /** Number of the prompt's rows that are collected. */
  #contextRows = 0;
  #pages: Float32Array[] = [];
  /** Number of rows in #pages that are collected. */
  #generationRows = 0;

  constructor(options: ReturnOptions, vocabSize: number) {
    this.#options = options;
    this.vocabSize = vocabSize;
  }

  get returnsGenerationLogits(): boolean {
    return this.#options.returnGenerationLogits;
  }

  /** Asks for the rows of the prompt that a chunk of the positions [start, end) computes; row `firstRow` is `start`. */
  askForContext(rows: ReturnedRows[], start: number, end: number, firstRow: number): void {
    const { promptTokens, returnContextLogits, returnContextLogProbs } = this.#options;
    if (!returnContextLogits && !returnContextLogProbs) return;
    // The last row has a log-prob only of a generated token.
    const numRows = returnContextLogits ? promptTokens.length : promptTokens.length - 1;
    const from = Math.max(start, this.#contextRows);
    const to = Math.min(end, numRows);
    if (from >= to) return;
    this.#context ??= this.#takeContextMemory();
    const { logits, logProbs } = this.#context;
    rows.push({
      of: 'tokens',
      first: firstRow + from - start,
      count: to - from,
      logits: logits?.subarray(from * this.vocabSize, to * this.vocabSize) ?? null,
      logProbs: logProbs === null ? null : this.#logProbRows(logProbs, from, to),
    });
  }

  /** Notes that the rows asked for by the chunk up to `end` have been written. */
  finishContext(end: number): void {
    this.#contextRows = Math.max(this.#contextRows, Math.min(end, this.#options.promptTokens.length));
  }

  /** Asks for the logits from which the next token is drawn. */
  askForGeneration(rows: ReturnedRows[], logitRow: number): void {
    if (!this.#options.returnGenerationLogits) return;
    const { vocabSize } = this;
    const perPage = this.#rowsPerPage;
    const page = Math.floor(this.#generationRows / perPage);
    const place = this.#generationRows % perPage;
    this.#pages[page] ??= new Float32Array(perPage * vocabSize);
    const logits = this.#pages[page].subarray(place * vocabSize, (place + 1) * vocabSize);
    rows.push({ of: 'logitRows', first: logitRow, count: 1, logits, logProbs: null });
  }

  /** Asks for the logits from which a beam's next token is chosen: the beams of one row share it. */
  askForBeam(rows: ReturnedRows[], logitRow: number, beam: GeneratedSequence): void {
    if (!this.#options.returnGenerationLogits) return;
    const logits = new Float32Array(this.vocabSize);
    beam.chooseFrom(logits);
    rows.push({ of: 'logitRows', first: logitRow, count: 1, logits, logProbs: null });
  }

  /** The logits of beams that are answered together, [beams x most tokens x vocabSize], with 0 after the end of a beam. */
  ofBeams(beams: readonly GeneratedSequence[]): Float32Array {
    const { vocabSize } = this;
    const longest = Math.max(...beams.map(({ logitRows }) => logitRows.length));
    const all = new Float32Array(beams.length * longest * vocabSize);
    for (const [beam, { logitRows }] of beams.entries()) {
      for (const [place, row] of logitRows.entries()) all.set(row, (beam * longest + place) * vocabSize);
    }
    return all;
  }

  /** Keeps the logits of the token that was drawn, which is now part of the output. */
  keepGeneration(): void {
    if (this.#options.returnGenerationLogits) this.#generationRows++;
  }

  /** Hands over everything collected of the prompt: all rows, unless the request ended before its context did. */
  takeContext(): ContextReturn {
    const { returnContextLogits, returnContextLogProbs, topContextLogProbs: numTop } = this.#options;
    const context = this.#context ?? this.#noContext();
    this.#context = null;
    const numEntries = Math.min(this.#contextRows, this.#options.promptTokens.length - 1);
    const { logits, logProbs } = context;
    return {
      logits: returnContextLogits ? logits!.subarray(0, this.#contextRows * this.vocabSize) : null,
      logProbs: returnContextLogProbs
        ? {
            logProbs: logProbs!.logProbs.subarray(0, numEntries),
            numTop,
            topTokens: logProbs!.topTokens.subarray(0, numEntries * numTop),
            topLogProbs: logProbs!.topLogProbs.subarray(0, numEntries * numTop),
          }
        : null,
    };
  }

  /** Hands over the logits of the tokens generated since the last call, in arrays of one or more rows. */
  takeGeneration(): Float32Array[] {
    const numRows = this.#generationRows;
    const perPage = this.#rowsPerPage;
    const pages = this.#pages.splice(0, Math.ceil(numRows / perPage));
    this.#generationRows = 0;
    const inLast = numRows - (pages.length - 1) * perPage;
    const last = pages.at(-1);
    if (last && inLast < perPage) pages[pages.length - 1] = last.subarray(0, inLast * this.vocabSize);
    return pages;
  }

  get #rowsPerPage(): number {
    return this.#options.streaming ? 1 : Math.min(this.#options.maxNewTokens, ROWS_PER_PAGE);
  }

  #takeContextMemory(): ContextReturn {
    const { promptTokens, returnContextLogits, returnContextLogProbs, topContextLogProbs } = this.#options;
    const numRows = promptTokens.length;
    return {
      logits: returnContextLogits ? new Float32Array(numRows * this.vocabSize) : null,
      logProbs: returnContextLogProbs ? noLogProbs(numRows, topContextLogProbs) : null,
    };
  }

  #noContext(): ContextReturn {
    return { logits: new Float32Array(0), logProbs: noLogProbs(0, 0) };
  }

  /**
   * Log-probs of places [from, to); the last row of the prompt has no known next token, and its entry is never handed
   * over.
   */
  #logProbRows(all: ContextLogProbs, from: number, to: number): RowLogProbs {
    const { numTop } = all;
    const tokens = new Int32Array(to - from);
    tokens.set(this.#options.promptTokens.subarray(from + 1, to + 1));
    // An embedding of the request's own is no token of the model, so it has no log-prob.
    for (const [i, token] of tokens.entries()) if (token >= this.vocabSize) tokens[i] = -1;
    return {
      tokens,
      logProbs: all.logProbs.subarray(from, to),
      numTop,
      topTokens: all.topTokens.subarray(from * numTop, to * numTop),
      topLogProbs: all.topLogProbs.subarray(from * numTop, to * numTop),
    };
  }
}

function noLogProbs(numRows: number, numTop: number): ContextLogProbs {
  return {
    logProbs: new Float32Array(numRows),
    numTop,
    topTokens: new Int32Array(numRows * numTop),
    topLogProbs: new Float32Array(numRows * numTop),
  };
}

/** Limits the memory that active requests together may hold for logits and top log-probs to be returned. */
export class ReturnedLogitsBudget {
  readonly #maxBytes: number;
  readonly #bytesPerRow: number;
  #reservedBytes = 0;

  constructor(maxBytes: number, vocabSize: number) {
    this.#maxBytes = maxBytes;
    this.#bytesPerRow = vocabSize * BYTES_PER_LOGIT;
  }

  get reservedBytes(): number {
    return this.#reservedBytes;
  }

  /**
   * Reason why the request is refused: its rows never fit, or not with those that other requests hold now;
   * else null.
   */
  whyRefused(options: ReturnOptions): RequestFailure | null {
    const bytes = this.#bytesOf(options);
    if (bytes === 0 || bytes <= this.#maxBytes - this.#reservedBytes) return null;
    const { field, text } = describe(options);
    const asked = says`${text} are ${bytes} bytes`;
    if (bytes > this.#maxBytes) {
      return failure(
        'tooLong',
        says`${asked}; ${option('maxReturnedLogitsBytes')} is ${this.#maxBytes}.`,
        field,
      );
    }
    return failure(
      'overloaded',
      says`${asked}; of ${option('maxReturnedLogitsBytes')} = ${this.#maxBytes} other requests hold ${this.#reservedBytes}, try again when they have ended.`,
      field,
    );
  }

  reserve(options: ReturnOptions): void {
    this.#reservedBytes += this.#bytesOf(options);
  }

  release(options: ReturnOptions): void {
    this.#reservedBytes -= this.#bytesOf(options);
  }

  #bytesOf(options: ReturnOptions): number {
    const { context, generation } = heldRows(options);
    const top = heldTopLogProbs(options);
    return (
      (context + generation) * this.#bytesPerRow + (top.context + top.generation) * BYTES_PER_TOP_LOG_PROB
    );
  }
}

/** The parts of the request that count, and the first tensor that asks for them. */
function describe(options: ReturnOptions): { field: string; text: NamedText } {
  const { context, generation } = heldRows(options);
  const top = heldTopLogProbs(options);
  const { promptTokens, maxNewTokens, numSequences } = options;
  const prompt = counted(promptTokens.length, 'prompt token');
  const parts: [string, string][] = [];
  if (context > 0) parts.push(['return_context_logits', `of ${prompt}`]);
  if (generation > 0) {
    parts.push(['return_generation_logits', `of ${counted(generation, 'token')} held at once`]);
  }
  if (top.context > 0) parts.push(['top_context_log_probs', `= ${options.topContextLogProbs} of ${prompt}`]);
  if (top.generation > 0) {
    const tokens = counted(maxNewTokens * numSequences, 'token');
    parts.push(['top_log_probs', `= ${options.topLogProbs} of ${tokens}`]);
  }
  const asked = parts.map(([name, of]) => says`${input(name)} ${of}`);
  return { field: parts[0]![0], text: asked.reduce((before, one) => says`${before} and ${one}`) };
}
