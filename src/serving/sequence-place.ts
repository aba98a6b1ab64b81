import type { InferListener, InferRequest } from '../../callbacks/infer/infer-types.js';

/** The sequences of a version: each goes on where its state is, also once another version has taken this one's place. */
export interface SequencePlace {
  /** The request's sequence is under way here. */
  holds(request: InferRequest): boolean;
  infer(request: InferRequest, on: InferListener): void;
  /** From now on requests of sequences that are under way in `before` go there. */
  goOnFrom(before: SequencePlace): void;
  /** Resolves when no sequence is under way here, or the version is closed. */
  whenOver(): Promise<void>;
}
