import { el } from '../dom.js';
import { type KeptParameters, ParameterStore } from './kept-parameters.js';
import { type NumberField, RARE_FIELDS, USUAL_FIELDS } from './parameter-fields.js';
import { PresetRow } from './preset-row.js';

/** Parameters of an answer; the server's own defaults hold for those not given. */
export interface Parameters {
  system: string;
  /** Texts at which the answer ends. */
  stop: string[];
  /** By their names in the API. */
  numbers: Readonly<Record<string, number>>;
  /** True where the probabilities of tokens are wanted too. */
  wantsLogProbs: boolean;
}

const UNFILLED: KeptParameters = { system: '', stop: '', fields: {} };

/** Form for an answer's parameters, which are remembered for each model. */
export class ParameterForm {
  readonly element: HTMLFormElement;
  readonly #system: HTMLTextAreaElement;
  readonly #stop: HTMLTextAreaElement;
  readonly #rare: HTMLDetailsElement;
  readonly #inputs = new Map<string, HTMLInputElement>();
  readonly #logProbs = el('input', { type: 'checkbox' });
  readonly #store = new ParameterStore(browserStorage());
  #model: string | null = null;

  constructor() {
    this.#system = el('textarea', {
      class: 'field',
      rows: '2',
      placeholder: 'What the model is to keep to in all its answers',
    });
    this.#stop = el('textarea', { class: 'field', rows: '1', placeholder: 'A text on each line' });
    this.#rare = el('details', { class: 'parameters-rare' }, [
      el('summary', {}, ['More samplers']),
      this.#numbers(RARE_FIELDS),
    ]);
    this.element = el(
      'form',
      { class: 'parameters', id: 'parameters', 'aria-label': 'Parameters' },
      [
        this.#numbers(USUAL_FIELDS),
        el('label', {}, [el('span', {}, ['System prompt']), this.#system]),
        el('label', {}, [el('span', {}, ['Stop at']), this.#stop]),
        this.#rare,
        el('label', { class: 'parameters-switch' }, [
          this.#logProbs,
          el('span', {}, ['Probabilities of tokens, to point at under the answer']),
        ]),
      ],
      { submit: (event) => event.preventDefault(), change: () => this.#remember() },
    );
    const row = new PresetRow(this.#store, {
      kept: () => this.#kept(),
      fill: (kept) => {
        this.#fill(kept);
        this.#remember();
      },
    });
    this.element.prepend(row.element);
  }

  /** What the reader has filled in. */
  #kept(): KeptParameters {
    const filled = [...this.#inputs].filter(([, input]) => input.value !== input.defaultValue);
    return {
      system: this.#system.value,
      stop: this.#stop.value,
      fields: Object.fromEntries(filled.map(([name, input]) => [name, input.value])),
    };
  }

  #fill({ system, stop, fields }: KeptParameters): void {
    this.#system.value = system;
    this.#stop.value = stop;
    for (const [name, input] of this.#inputs) input.value = fields[name] ?? input.defaultValue;
  }

  #remember(): void {
    if (this.#model !== null) this.#store.remember(this.#model, this.#kept());
  }

  /**
   * Shows the form of a model as it was last filled in for it.
   * @param defaults what the model recommends
   */
  showModel(model: string | null, defaults: Readonly<Record<string, number>>): void {
    this.#showDefaults(defaults);
    if (model === null || model === this.#model) return;
    const isFirst = this.#model === null;
    this.#model = model;
    const kept = this.#store.of(model);
    if (kept !== null || !isFirst) this.#fill(kept ?? UNFILLED);
  }

  #numbers(fields: readonly NumberField[]): HTMLElement {
    const labels = fields.map(({ name, label, placeholder, attributes }) => {
      const input = el('input', { class: 'field', type: 'number', placeholder, ...attributes });
      this.#inputs.set(name, input);
      return el('label', {}, [el('span', {}, [label]), input]);
    });
    return el('div', { class: 'parameters-numbers' }, labels);
  }

  /**
   * Shows what holds where a field is empty. A value that the form began with gives way to a recommendation of the model, unless the reader has
   * changed it.
   */
  #showDefaults(defaults: Readonly<Record<string, number>>): void {
    for (const { name, placeholder, attributes } of [...USUAL_FIELDS, ...RARE_FIELDS]) {
      const input = this.#inputs.get(name)!;
      const recommended = defaults[name];
      input.placeholder = recommended === undefined ? placeholder : String(recommended);
      const usual = attributes.value ?? '';
      if (input.value === input.defaultValue) {
        input.defaultValue = recommended === undefined ? usual : '';
        input.value = input.defaultValue;
      }
    }
  }

  /** Reads the form; null where a field is wrong: the browser then points at it and says why. */
  read(): Parameters | null {
    const numbers: Record<string, number> = {};
    for (const [name, input] of this.#inputs) {
      if (!input.checkValidity()) {
        this.element.hidden = false;
        if (this.#rare.contains(input)) this.#rare.open = true;
        input.reportValidity();
        return null;
      }
      if (input.value !== '') numbers[name] = input.valueAsNumber;
    }
    const stop = this.#stop.value.split('\n').filter((line) => line !== '');
    return { system: this.#system.value.trim(), stop, numbers, wantsLogProbs: this.#logProbs.checked };
  }
}

/** The browser's storage; null where it allows none. */
function browserStorage(): Storage | null {
  try {
    return localStorage;
  } catch {
    return null;
  }
}
