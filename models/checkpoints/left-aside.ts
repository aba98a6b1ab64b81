import type { ModelConfig } from '../model-config.js';
import type { PartLeftAside } from './checkpoint.js';
import { leftAsidePart, type UnreadTensor } from './unread-tensors.js';
import { unwrapTensorName } from './wrappers.js';

/** Counts the tensors of each part of a model that is left aside. */
export class LeftAside {
  readonly #parts = new Map<string, number>();

  /** Name in the text model of a wrapper's tensor; null, counted, for one of another part. */
  readonly textName = (name: string): string | null => {
    const unwrapped = unwrapTensorName(name);
    if ('name' in unwrapped) return unwrapped.name;
    this.#count(unwrapped.part);
    return null;
  };

  /** Counts tensors that nothing reads. @throws CheckpointError for one without which the answers would be others */
  addUnread(tensors: readonly UnreadTensor[], config: ModelConfig): void {
    for (const tensor of tensors) {
      const part = leftAsidePart(tensor, config);
      if (part !== null) this.#count(part);
    }
  }

  get parts(): PartLeftAside[] {
    return [...this.#parts].map(([part, tensors]) => ({ part, tensors }));
  }

  #count(part: string): void {
    this.#parts.set(part, (this.#parts.get(part) ?? 0) + 1);
  }
}
