import type { Admit, AnswerTally } from './answer-tally.js';
import type { Datatype } from './datatypes.js';
import type { BatchTimes } from './instance-messages.js';
import type { TraceSpan } from './trace-span.js';

/** Values that accompany a request, a tensor or a response, as the Open Inference Protocol has them. */
export type InferParameters = Readonly<Record<string, string | number | bigint | boolean>>;

/** A tensor on its way into a model or out of it. */
export interface InferTensor {
  readonly name: string;
  readonly datatype: Datatype;
  /** The batch dimension first, where the model has one. */
  readonly shape: readonly number[];
  /**
   * The elements in row-major order, little-endian; for BYTES each element is its length, 4 bytes little-endian, and its
   * bytes. This is the raw form of the protocol's binary extension and of gRPC: it is never copied to be sent.
   */
  readonly data: Uint8Array;
}

/** The sequence that a request belongs to. */
export interface InferSequence {
  /** Never 0 and never '': that is no sequence. */
  readonly id: bigint | string;
  readonly start: boolean;
  readonly end: boolean;
}

/** Terms on which a request is served, as far as the way by which it came knows them. */
export interface InferTerms {
  /** Name of the caller's API key, by which queues are fair and caches apart; '': there are no keys. */
  readonly caller: string;
  /** Weight of that key relative to others, with fair queueing. */
  readonly weight: number;
  /** A name of the request for those who watch the engine. */
  readonly label: string;
  /** Most milliseconds that the answer may take, waiting included; null: no limit. */
  readonly timeLimitMs: number | null;
  /** The salt under which prompts are kept for reuse. @param own of the request itself */
  cacheSalt(own: bigint | undefined): bigint | undefined;
  /** Accounts for memory that the answer may take. @throws where there is none */
  hold(bytes: number): void;
  /** Accounts for tensors that wait inside of an ensemble, until `letGo`. @throws InferError unavailable where there is no memory for them */
  keep(bytes: number): void;
  /** Gives back what `keep` took. */
  letGo(bytes: number): void;
  /** Resolves when there is room for another response; null: there is now. A model need not ask. */
  room(): Promise<void> | null;
  /** Adds up what its answers take; absent: nothing is added up. */
  readonly tally?: AnswerTally | undefined;
  /** Asks whether its caller's limits allow the answers, before they are begun; absent: the caller's usage is not counted. Rejects with an InferError. */
  readonly admit?: Admit | undefined;
  /** Aborted when the answer is to end with what there is of it, as far as the model can do that: see InferModel.endsWhenStopped. */
  readonly stop?: AbortSignal | undefined;
  /** Fingerprint of the engine that is to answer; absent: any of the model. Only models that generate text have names for theirs. */
  readonly engine?: string | undefined;
  /**
   * Receives a function that says whether the answer waits for an engine elsewhere, and may be refused for
   * want of one; absent: it is not wanted.
   */
  readonly onBegun?: ((isWaiting: () => boolean) => void) | undefined;
}

/** A step of an ensemble, for one request of its client: all requests that it makes there have the same object. */
export interface InferOrigin {
  /** Ensembles around it, the step's own among them. */
  readonly depth: number;
}

/** A request for tensors as every protocol makes it. */
export interface InferRequest {
  /** The client's id; '' where it gave none. */
  readonly id: string;
  readonly inputs: readonly InferTensor[];
  /** Names of the outputs that are wanted; null: all of them. */
  readonly outputs: readonly string[] | null;
  readonly parameters: InferParameters;
  readonly sequence: InferSequence | null;
  /** 1 is the highest level; 0: the model's default. */
  readonly priority: number;
  /** Microseconds that it may wait in the queue; 0: the model's default. */
  readonly timeoutUs: number;
  /** Aborted when the client has left. */
  readonly signal?: AbortSignal | undefined;
  /** Name of the API key that sent it, whose sequences are its own; '' or absent: no key. */
  readonly owner?: string | undefined;
  /** Number of the batch that waits for the answer, of all models in this process, where the code of a model asks. */
  readonly caller?: number | undefined;
  /** One response is taken and no more: a model that is asked for several refuses. Absent: any number is. */
  readonly takesOne?: true | undefined;
  /** Absent: they are not known, and it is served without limits. */
  readonly terms?: InferTerms | undefined;
  /** Absent: no ensemble asks. */
  readonly origin?: InferOrigin | undefined;
  /** Receives how long the parts of the computation took, before the end of a request that is answered. */
  readonly onTimes?: ((times: BatchTimes) => void) | undefined;
  /** The caller's span, below which the request is recorded; absent: it is not traced. */
  readonly trace?: TraceSpan | undefined;
}

/** An answer, or one of several where the model is decoupled. */
export interface InferResponse {
  readonly outputs: readonly InferTensor[];
  readonly parameters?: InferParameters;
  /** It is known to be the last one of its request; absent: another one may come. */
  readonly isLast?: true;
  /**
   * Says that the outputs are no longer read, so that their memory may be used again. It need not be called.
   */
  readonly release?: (() => void) | undefined;
}

/** Receives the answers to a request: any number of responses, and then either `end` or `fail`, once. */
export interface InferListener {
  /** @returns a promise where a model with many responses is to wait with the next ones until it resolves; it never rejects */
  response(response: InferResponse): void | Promise<void>;
  end(): void;
  /** With an InferError where the request could not be answered. */
  fail(error: Error): void;
}
