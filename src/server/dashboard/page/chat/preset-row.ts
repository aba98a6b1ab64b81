import { el } from '../dom.js';
import type { KeptParameters, ParameterStore } from './kept-parameters.js';

/** Characters of the longest name. */
const MAX_NAME = 60;

/** Chooses, keeps and deletes presets of the form that it stands in. */
export class PresetRow {
  readonly element: HTMLElement;
  readonly #store: ParameterStore;
  readonly #select: HTMLSelectElement;
  readonly #name = el('input', {
    class: 'field',
    placeholder: 'Name',
    'aria-label': 'Name of the preset',
    maxlength: MAX_NAME,
  });
  readonly #remove: HTMLButtonElement;
  readonly #said = el('span', { class: 'preset-said', role: 'status' });

  constructor(store: ParameterStore, form: { kept(): KeptParameters; fill(kept: KeptParameters): void }) {
    this.#store = store;
    this.#select = el('select', { class: 'field', 'aria-label': 'Preset' }, [], {
      change: () => {
        const preset = store.presets.find(({ name }) => name === this.#select.value);
        if (preset !== undefined) form.fill(preset);
        this.#name.value = this.#select.value;
        this.#show('');
      },
    });
    const save = el('button', { class: 'button', type: 'button' }, ['Save'], {
      click: () => {
        const name = this.#name.value.trim();
        if (name === '') return this.#name.focus();
        const problem = store.savePreset({ ...form.kept(), name });
        this.#list(name);
        this.#show(problem ?? `Saved \u201c${name}\u201d.`);
      },
    });
    this.#name.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter') return;
      event.preventDefault();
      save.click();
    });
    this.#remove = el('button', { class: 'button quiet', type: 'button' }, ['Delete'], {
      click: () => {
        const { value } = this.#select;
        store.removePreset(value);
        this.#list('');
        this.#name.value = '';
        this.#show(`Deleted \u201c${value}\u201d.`);
        this.#select.focus();
      },
    });
    const parts = [this.#select, this.#name, save, this.#remove, this.#said];
    this.element = el('div', { class: 'presets', role: 'group', 'aria-label': 'Presets' }, parts);
    this.#list('');
    this.#show('');
  }

  #list(chosen: string): void {
    const none = el('option', { value: '' }, ['No preset']);
    this.#select.replaceChildren(
      none,
      ...this.#store.presets.map(({ name }) => el('option', { value: name }, [name])),
    );
    this.#select.value = chosen;
  }

  #show(words: string): void {
    this.#remove.disabled = this.#select.value === '';
    this.#said.textContent = words;
  }
}
