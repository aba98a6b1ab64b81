import { el } from '../../dom.js';
import { menu } from '../../menu.js';
import type { Session } from '../../session.js';

/** A menu of the servers of tools that answers may use: those that the operator has named. It is hidden where there are none. */
export class ToolChoice {
  readonly element: HTMLDetailsElement;
  readonly #session: Session;
  readonly #items = el('div', { class: 'tools-items', role: 'group', 'aria-label': 'Servers of tools' });
  readonly #chosen = new Set<string>();
  #isKnown = false;

  constructor(session: Session) {
    this.#session = session;
    const note = el('p', { class: 'tools-note' }, [
      'The model may ask to call their tools. Each call waits for you.',
    ]);
    this.element = menu({ name: 'Tools', kind: 'tools' }, [note, this.#items], () => {});
    this.element.hidden = true;
  }

  /** Names of the servers whose tools the next answer may use. */
  get chosen(): readonly string[] {
    return [...this.#chosen];
  }

  /** Asks which servers there are, once it may. */
  async load(): Promise<void> {
    if (this.#isKnown) return;
    const response = await this.#session.fetch('v1/mcp_servers').catch(() => null);
    if (!response?.ok || this.#isKnown) return;
    this.#isKnown = true;
    const { data } = (await response.json()) as { data: { server_label: string }[] };
    this.element.hidden = data.length === 0;
    this.#items.replaceChildren(...data.map(({ server_label: name }) => this.#item(name)));
  }

  #item(name: string): HTMLElement {
    const input = el('input', { type: 'checkbox' }, [], {
      change: () => {
        if (input.checked) this.#chosen.add(name);
        else this.#chosen.delete(name);
        const [summary] = this.element.getElementsByTagName('summary');
        summary!.textContent = this.#chosen.size === 0 ? 'Tools' : `Tools: ${this.#chosen.size}`;
      },
    });
    return el('label', {}, [input, el('span', {}, [name])]);
  }
}
