import { el } from '../dom.js';

/** Parameters of an answer; the server's own defaults hold for those not given. */
export interface Parameters {
  system: string;
  temperature?: number;
  top_p?: number;
  top_k?: number;
  min_p?: number;
  max_tokens?: number;
  repetition_penalty?: number;
  presence_penalty?: number;
  frequency_penalty?: number;
  seed?: number;
}

interface NumberField {
  name: Exclude<keyof Parameters, 'system'>;
  label: string;
  placeholder: string;
  attributes: Readonly<Record<string, string>>;
}

const FIELDS: readonly NumberField[] = [
  {
    name: 'temperature',
    label: 'Temperature',
    placeholder: '1',
    // The default is below the API's 1, since small models then keep to their subject.
    attributes: { value: '0.7', min: '0', max: '2', step: '0.1' },
  },
  { name: 'top_p', label: 'Top p', placeholder: '1', attributes: { min: '0.01', max: '1', step: '0.01' } },
  {
    name: 'max_tokens',
    label: 'Max tokens',
    placeholder: 'server\u2019s',
    attributes: { min: '1', step: '1' },
  },
  { name: 'top_k', label: 'Top k', placeholder: 'off', attributes: { min: '0', step: '1' } },
  { name: 'min_p', label: 'Min p', placeholder: 'off', attributes: { min: '0', max: '1', step: '0.01' } },
  {
    name: 'repetition_penalty',
    label: 'Repetition penalty',
    placeholder: '1',
    attributes: { min: '0.01', max: '2', step: '0.01' },
  },
  {
    name: 'presence_penalty',
    label: 'Presence penalty',
    placeholder: '0',
    attributes: { min: '-2', max: '2', step: '0.1' },
  },
  {
    name: 'frequency_penalty',
    label: 'Frequency penalty',
    placeholder: '0',
    attributes: { min: '-2', max: '2', step: '0.1' },
  },
  { name: 'seed', label: 'Seed', placeholder: 'random', attributes: { min: '0', step: '1' } },
];

/** Form for an answer's parameters. */
export class ParameterForm {
  readonly element: HTMLFormElement;
  readonly #system: HTMLTextAreaElement;
  readonly #inputs = new Map<NumberField['name'], HTMLInputElement>();

  constructor() {
    const numbers = FIELDS.map(({ name, label, placeholder, attributes }) => {
      const input = el('input', { class: 'field', type: 'number', placeholder, ...attributes });
      this.#inputs.set(name, input);
      return el('label', {}, [el('span', {}, [label]), input]);
    });
    this.#system = el('textarea', {
      class: 'field',
      rows: '2',
      placeholder: 'What the model is to keep to in all its answers',
    });
    this.element = el(
      'form',
      { class: 'parameters', id: 'parameters', 'aria-label': 'Parameters' },
      [
        el('div', { class: 'parameters-numbers' }, numbers),
        el('label', {}, [el('span', {}, ['System prompt']), this.#system]),
      ],
      { submit: (event) => event.preventDefault() },
    );
  }

  /** Reads the form; null where a field is wrong: the browser then points at it and says why. */
  read(): Parameters | null {
    const parameters: Parameters = { system: this.#system.value.trim() };
    for (const [name, input] of this.#inputs) {
      if (!input.checkValidity()) {
        this.element.hidden = false;
        input.reportValidity();
        return null;
      }
      if (input.value !== '') parameters[name] = input.valueAsNumber;
    }
    return parameters;
  }
}
