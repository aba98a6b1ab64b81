import { performance } from 'node:perf_hooks';
import { onAbort } from '../../../base/on-abort.js';
import type { AnswerTally } from '../../../callbacks/infer/answer-tally.js';
import { InferError } from '../../../callbacks/infer/infer-error.js';
import type { InferListener, InferTerms } from '../../../callbacks/infer/infer-types.js';
import type { TraceSpan } from '../../../callbacks/infer/trace-span.js';
import type { PieceSource } from '../../../callbacks/piece-source.js';
import type { TokenPiece } from '../../../callbacks/token-request.js';
import { StopStrings } from '../../../models/tokenizer/stop-strings.js';
import { SequenceText } from '../../generation/sequence-text.js';
import { generateTokens } from '../../generation/text-generation.js';
import type { TextModel } from '../../generation/text-model.js';
import type { ObserveRequest, RequestObserver } from '../request-observer.js';
import type { GenerationOutputs, RequestFacts, Told } from './generation-outputs.js';
import type { Generation } from './read-generation.js';
import { joined, SequenceAnswer, type SequencePart } from './sequence-answer.js';

/** One sequence of the run. */
interface Sequence {
  readonly index: number;
  readonly source: PieceSource<TokenPiece>;
  readonly observer: RequestObserver;
  answer: SequenceAnswer;
  /** What has come and is sent when all of it has. */
  kept: SequencePart[];
  isOver: boolean;
}

export interface GenerationRunOptions {
  model: TextModel;
  generation: Generation;
  outputs: GenerationOutputs;
  /** Name of the model, for what is observed. */
  name: string;
  observe: ObserveRequest;
  terms: InferTerms | undefined;
  /** Receives the answers for counting; undefined: they are not counted. */
  tally: AnswerTally | undefined;
  /** The client's id; '' where it gave none. */
  requestId: string;
  /** Span of the request at the model; undefined: it is not traced. */
  trace: TraceSpan | undefined;
  /** Aborted when the client has left. */
  signal: AbortSignal | undefined;
  on: InferListener;
  /** Called once, before the listener receives the end. @param error null: it was answered */
  onOver: (error: unknown) => void;
}

const NO_TOKENS = new Int32Array(0);

/**
 * One request for tensors on its way through the engine. What is streamed is sent as it comes, in a response
 * for each piece of each sequence; all else, and beams, in one response at the end.
 *
 *   generateTokens -> pieces of sequence 0 --+-> SequenceAnswer -> streamed: a response -> room? -> the next
 *                     pieces of sequence 1 --'                  -> else: kept until all have ended
 */
export class GenerationRun {
  readonly #options: GenerationRunOptions;
  readonly #isStreamed: boolean;
  readonly #arrivalNs = BigInt(Math.round(1e6 * (performance.timeOrigin + performance.now())));
  readonly #abort = new AbortController();
  readonly #sequences: Sequence[] = [];
  readonly #facts: RequestFacts;
  #running = 0;
  #isOver = false;
  #isStopped = false;
  /** The client lags. */
  #isPaused = false;
  /** The sequence that the next turn begins with. */
  #next = 0;
  #leave: () => void = () => {};

  constructor(options: GenerationRunOptions) {
    this.#options = options;
    const { request, isStreamed } = options.generation;
    this.#isStreamed = isStreamed && request.beams === undefined;
    this.#facts = {
      prompt: null,
      cachedTokens: null,
      stopWords: StopStrings.of(request.stop ?? []).texts,
      timing: null,
      arrivalNs: this.#arrivalNs,
      numOutputTokens: 0,
    };
  }

  /** Queues all sequences, or none. @throws whatever the engine refuses */
  begin(): void {
    const { generation, name, observe, signal, tally } = this.#options;
    const { request, count } = generation;
    const { promptTokens, maxTokens, guide } = request;
    const sources = this.#started();
    this.#running = sources.length;
    for (const [index, source] of sources.entries()) {
      const choices = index === 0 ? { choices: count } : { sharesPrompt: true };
      const observed = { model: name, promptTokens: promptTokens.length, maxTokens, ...choices };
      const observer = observe({
        ...observed,
        isGuided: guide !== undefined,
        tally,
        ...this.#traced,
      });
      this.#sequences.push({
        index,
        source,
        observer,
        answer: this.#answerOf(index),
        kept: [],
        isOver: false,
      });
    }
    if (signal !== undefined) this.#leave = onAbort(signal, () => this.#abandon(signal.reason));
    if (this.#isStopped) this.#abort.abort();
    this.#options.terms?.onBegun?.(() => this.#isWaiting);
    for (const sequence of this.#sequences) {
      if (this.#isOver) return;
      sequence.source.listen({
        onPiece: (piece) => this.#take(sequence, piece),
        onError: (error) => this.#fail(error),
        ...(this.#isStreamed ? {} : { onRestart: () => this.#restart(sequence) }),
      });
    }
  }

  /** Some of it waits for an engine elsewhere. */
  get #isWaiting(): boolean {
    return this.#sequences.some(({ isOver, source }) => !isOver && source.isWaiting === true);
  }

  #answerOf(index: number): SequenceAnswer {
    const { request, known } = this.#options.generation;
    return new SequenceAnswer(this.#textOf(), request.engine?.stopWords ?? [], known[index]?.length ?? 0);
  }

  /** Another engine begins it again: nothing of it has been sent. */
  #restart(sequence: Sequence): void {
    for (const { tokens } of sequence.kept) this.#facts.numOutputTokens -= tokens.length;
    sequence.kept = [];
    sequence.answer = this.#answerOf(sequence.index);
    this.#facts.cachedTokens = null;
  }

  /** What the trace of the request records, if it is traced. */
  get #traced() {
    const { trace: parent, requestId, generation } = this.#options;
    if (parent === undefined) return {};
    const { temperature, topP } = generation.request;
    return { traced: { parent, requestId, temperature, topP, choices: generation.count } };
  }

  #started(): PieceSource<TokenPiece>[] {
    const { model, generation, trace } = this.#options;
    try {
      const request = { ...generation.request, signal: this.#abort.signal, trace };
      return generateTokens(model, request, generation.count);
    } catch (error) {
      this.#abort.abort();
      throw error;
    }
  }

  #textOf(): SequenceText | null {
    const { model, generation, outputs } = this.#options;
    const stop = StopStrings.of(generation.request.stop ?? []);
    if (!outputs.wantsText && stop.texts.length === 0) return null;
    return new SequenceText(model.codec, { promptTokens: NO_TOKENS, stop });
  }

  /** Ends it with what it has. */
  stop(): void {
    this.#isStopped = true;
    this.#abort.abort();
    this.#resume();
  }

  #take(sequence: Sequence, piece: TokenPiece): void {
    if (this.#isOver || sequence.isOver) return;
    try {
      this.#read(sequence, piece);
    } catch (error) {
      this.#fail(error);
    }
  }

  #read(sequence: Sequence, piece: TokenPiece): void {
    const { answer, observer, source } = sequence;
    if (piece.finishReason === 'cancelled' && !this.#isStopped) throw cutOff();
    this.#noteFacts(sequence, piece);
    const part = answer.take(piece);
    this.#facts.numOutputTokens += part.tokens.length;
    if (part.tokens.length > 0) observer.onTokens(part.tokens.length);
    if (part.finishReason !== null) {
      sequence.isOver = true;
      this.#running--;
      // A stop string ends the text before the engine knows.
      if (piece.finishReason === null) source.leave(true);
      observer.onEnd(part.finishReason === 'cancelled' ? 'abort' : part.finishReason, piece.timing);
    }
    if (this.#isStreamed) this.#tell(sequence, part);
    else sequence.kept.push(part);
    if (this.#running === 0) this.#end();
  }

  #noteFacts({ index, observer }: Sequence, piece: TokenPiece): void {
    const facts = this.#facts;
    const { cachedTokens, contextLogits, contextLogProbs, timing } = piece;
    if (cachedTokens !== undefined) {
      observer.onCachedTokens(cachedTokens);
      facts.cachedTokens ??= cachedTokens;
    }
    if (index === 0 && (contextLogits ?? contextLogProbs) !== undefined) facts.prompt = piece;
    facts.timing = timing ?? null;
  }

  /** A response with what is new of one sequence; what says nothing is left out. */
  #tell({ index, answer }: Sequence, part: SequencePart): void {
    const { outputs, generation } = this.#options;
    const isSilent = part.text === '' && !(outputs.tellsTokens && part.tokens.length > 0);
    if (isSilent && part.finishReason === null && this.#facts.prompt === null) return;
    const sequenceIndex = generation.count > 1 ? index : null;
    this.#respond({
      answers: [answer],
      parts: [part],
      before: [NO_TOKENS],
      sequenceIndex,
      facts: this.#facts,
    });
    this.#facts.prompt = null;
    this.#facts.stopWords = null;
    this.#facts.cachedTokens = null;
  }

  #respond(told: Told): void {
    const { on, outputs, terms } = this.#options;
    // The receiver of the responses reports by itself that it lags, or the server of the request does.
    const last = this.#running === 0 ? ({ isLast: true } as const) : {};
    const room = on.response({ outputs: outputs.of(told), ...last }) ?? terms?.room() ?? null;
    if (room === null || this.#isOver || this.#isPaused) return;
    this.#isPaused = true;
    for (const { source } of this.#sequences) source.pause();
    void room.then(() => this.#resume());
  }

  /** Sends what has gathered, sequence by sequence, until the client lags again. */
  #resume(): void {
    this.#isPaused = false;
    const { length } = this.#sequences;
    for (let i = 0; i < length && !this.#isPaused && !this.#isOver; i++) {
      const { source } = this.#sequences[this.#next]!;
      this.#next = (this.#next + 1) % length;
      source.resume();
    }
  }

  #end(): void {
    if (!this.#isStreamed) {
      const { generation, outputs, on } = this.#options;
      const { promptTokens } = generation.request;
      const prompt = generation.excludesInput ? NO_TOKENS : Int32Array.from(promptTokens);
      const answers = this.#sequences.map(({ answer }) => answer);
      const parts = this.#sequences.map(({ kept }) => joined(kept));
      const before = this.#sequences.map(({ index }) => withKnown(prompt, generation.known[index]));
      on.response({
        outputs: outputs.of({ answers, parts, before, sequenceIndex: null, facts: this.#facts }),
      });
    }
    this.#finish();
    this.#options.onOver(null);
    this.#options.on.end();
  }

  /** The client has left: the engine frees the blocks within an iteration. */
  #abandon(reason: unknown): void {
    for (const { source, observer, isOver } of this.#sequences) {
      if (isOver) continue;
      if (source.numGathered > 0) observer.onForgotten(source.numGathered);
      source.leave();
      observer.onEnd('abort');
    }
    this.#close(reason);
  }

  #fail(error: unknown): void {
    if (this.#isOver) return;
    for (const { source, observer, isOver } of this.#sequences) {
      if (isOver) continue;
      source.leave();
      observer.onEnd('error');
    }
    this.#close(error);
  }

  #close(error: unknown): void {
    if (this.#isOver) return;
    this.#finish();
    this.#abort.abort();
    this.#options.onOver(error);
  }

  #finish(): void {
    this.#isOver = true;
    this.#leave();
  }
}

function withKnown(prompt: Int32Array, known: Int32Array | undefined): Int32Array {
  if (known === undefined || known.length === 0) return prompt;
  const all = new Int32Array(prompt.length + known.length);
  all.set(prompt);
  all.set(known, prompt.length);
  return all;
}

/** An end that was not requested. */
function cutOff(): InferError {
  return new InferError('The server is shutting down, and this answer was cut off.', 'unavailable');
}
