import { el } from './dom.js';
import type { NextModel } from './model-choice.js';
import type { ChatModel } from './models.js';

/** The name of the one model that generates text, or a list of them to choose from. */
export class ModelList {
  readonly element = el('span', { class: 'header-model' });
  readonly #select: HTMLSelectElement;
  readonly #base = el('span', { class: 'header-base' });
  /** What the list has now. */
  #listed = '';

  constructor(choose: (model: string) => void) {
    this.#select = el('select', { class: 'field', 'aria-label': 'Model' }, [], {
      change: () => choose(this.#select.value),
    });
  }

  show(models: readonly ChatModel[], { model, gone }: NextModel): void {
    // Whoever has just chosen in the list stays in it.
    if (models.length < 2 && gone === null && document.activeElement !== this.#select) {
      const name = models[0]?.id ?? '';
      this.element.replaceChildren(name);
      this.element.title = name;
      return;
    }
    const listed = JSON.stringify([models.map(({ id, parent }) => [id, parent]), gone]);
    // Somebody may be in the list: it is made anew only where it has to be.
    if (listed !== this.#listed) this.#select.replaceChildren(...optionsOf(models, gone));
    this.#listed = listed;
    this.#select.value = gone ?? model?.id ?? '';
    this.#base.textContent = model === null || model.parent === null ? '' : `LoRA adapter of ${model.parent}`;
    if (!this.#select.isConnected) this.element.replaceChildren(this.#select, this.#base);
    this.element.title = '';
  }
}

/** One that is gone in front; then the models, those that have adapters in a group with these. */
function optionsOf(models: readonly ChatModel[], gone: string | null): HTMLElement[] {
  const option = ({ id }: ChatModel) => el('option', { value: id }, [id]);
  const listed = models.flatMap((model) => {
    if (model.parent !== null) return [];
    const adapters = models.filter(({ parent }) => parent === model.id);
    if (adapters.length === 0) return [option(model)];
    const label = `${model.id} and its LoRA adapters`;
    return [el('optgroup', { label }, [model, ...adapters].map(option))];
  });
  if (gone === null) return listed;
  return [el('option', { value: gone, disabled: true }, [`${gone} (gone)`]), ...listed];
}
