import type { InferRequest } from '../../../callbacks/infer/infer-types.js';
import type { SequenceKey } from '../../../scheduler/tensors/sequences/sequence-line.js';
import type { SequencePlace } from '../infer-model.js';
import { keyedSequence } from './sequence-former.js';

/** The version whose place a model has taken, while sequences are under way there. */
export class VersionBefore {
  /** null: there is none, or its sequences are over. */
  #place: SequencePlace | null = null;
  /** Its sequences that have begun again in the new version. */
  readonly #restarted = new Set<SequenceKey>();

  /** See SequencePlace.goOnFrom. */
  follow(place: SequencePlace): void {
    this.#place = place;
    void place.whenOver().then(() => {
      this.#place = null;
      this.#restarted.clear();
    });
  }

  /** The sequence of the request is under way there, and has not begun again in the new version. */
  holds(request: InferRequest, key: SequenceKey): boolean {
    return this.#place !== null && !this.#restarted.has(key) && this.#place.holds(request);
  }

  /** Where the request is answered because its sequence is there; null: in the new version, as one that begins a sequence. */
  placeOf(request: InferRequest): SequencePlace | null {
    const key = this.#place === null ? null : keyOf(request);
    if (key === null || !this.holds(request, key)) return null;
    if (!request.sequence!.start) return this.#place;
    this.#restarted.add(key);
    return null;
  }
}

/** The key of a request's sequence; null: it has none. */
export function keyOf({ sequence, owner }: InferRequest): SequenceKey | null {
  return sequence === null ? null : keyedSequence(sequence, owner).key;
}
