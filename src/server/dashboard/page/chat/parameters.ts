import { el } from '../dom.js';
import { type NumberField, RARE_FIELDS, USUAL_FIELDS } from './parameter-fields.js';

/** Parameters of an answer; the server's own defaults hold for those not given. */
export interface Parameters {
  system: string;
  /** Texts at which the answer ends. */
  stop: string[];
  /** By their names in the API. */
  numbers: Readonly<Record<string, number>>;
}

/** Form for an answer's parameters. */
export class ParameterForm {
  readonly element: HTMLFormElement;
  readonly #system: HTMLTextAreaElement;
  readonly #stop: HTMLTextAreaElement;
  readonly #rare: HTMLDetailsElement;
  readonly #inputs = new Map<string, HTMLInputElement>();

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
      ],
      { submit: (event) => event.preventDefault() },
    );
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
  showDefaults(defaults: Readonly<Record<string, number>>): void {
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
    return { system: this.#system.value.trim(), stop, numbers };
  }
}
