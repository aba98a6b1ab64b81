import { el, say } from '../dom.js';
import type { MountPanel, Page } from '../panels.js';
import {
  CatalogueClient,
  CatalogueProblem,
  type OfferedEntry,
  type OfferedModels,
} from './catalogue-client.js';
import { CatalogueRow, type RowAction } from './catalogue-row.js';
import { groundsWords, hubWords, summaryOf } from './catalogue-words.js';

/** Milliseconds between two looks while something is changing, and while nothing is known to. */
const BUSY_MS = 1000;
const CALM_MS = 15_000;

/** Panel with the models that fit this machine: those that are here, and those that can be downloaded. */
export const mountCatalogue: MountPanel = (root, page) => void new CataloguePanel(root, page);

class CataloguePanel {
  readonly #root: HTMLElement;
  readonly #page: Page;
  readonly #client: CatalogueClient;
  readonly #rows = new Map<string, CatalogueRow>();
  /** What is under way, and what went wrong, by the names of models. */
  readonly #doing = new Map<string, string>();
  readonly #problems = new Map<string, string>();
  readonly #summary = el('span', { class: 'catalogue-summary' });
  readonly #said = el('p', { class: 'catalogue-said', role: 'status' });
  readonly #hub = el('p', { class: 'catalogue-note' });
  readonly #refusal = el('p', { class: 'catalogue-note' });
  readonly #list = el('ul', { class: 'catalogue-list', 'aria-label': 'Models for this machine' });
  readonly #grounds = el('p', { class: 'catalogue-note' });
  readonly #other: HTMLFormElement;
  readonly #fold: HTMLDetailsElement;
  #models: OfferedModels | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isAsking = false;
  /** Whether text is generated here, as far as it was shown. */
  #hasChat: boolean | null = null;

  constructor(root: HTMLElement, page: Page) {
    this.#root = root;
    this.#page = page;
    this.#client = new CatalogueClient(page.session);
    this.#other = this.#otherForm();
    this.#fold = el('details', { class: 'catalogue' }, [
      el('summary', {}, [el('h2', { class: 'panel-title' }, ['Models for this machine']), this.#summary]),
      this.#said,
      this.#refusal,
      this.#hub,
      this.#list,
      this.#other,
      this.#grounds,
    ]);
    root.append(this.#fold);
    page.session.on('unlocked', () => void this.#look());
    page.feed.on('state', () => this.#unfold());
    page.repository.on('models', () => {
      // A model that was loaded or unloaded elsewhere.
      if (this.#models !== null) this.#plan(BUSY_MS);
    });
    document.addEventListener('visibilitychange', () => void this.#look());
    void this.#look();
  }

  async #look(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#isAsking || document.hidden) return;
    this.#isAsking = true;
    try {
      this.#models = await this.#client.list();
      this.#show();
    } catch (error) {
      // The header says that the server is away; the list is as it was.
      if (!(error instanceof CatalogueProblem)) throw error;
    } finally {
      this.#isAsking = false;
    }
    if (this.#models !== null) this.#plan(isChanging(this.#models) ? BUSY_MS : CALM_MS);
  }

  /** Looks again after a while, or sooner where that was planned. */
  #plan(ms: number): void {
    if (ms === BUSY_MS) clearTimeout(this.#timer);
    else if (this.#timer !== undefined) return;
    this.#timer = setTimeout(() => void this.#look(), ms);
  }

  /** Open where there is no model to chat with, or it was unloaded, until the reader says otherwise. */
  #unfold(): void {
    const { kind } = this.#page.feed.state;
    if (kind !== 'live' && kind !== 'idle' && kind !== 'gone') return;
    const hasChat = kind === 'live';
    if (hasChat !== this.#hasChat) this.#fold.open = !hasChat;
    this.#hasChat = hasChat;
  }

  #show(): void {
    const models = this.#models;
    this.#root.hidden = models === null;
    if (models === null) return;
    const { data, download_refusal: refusal, may_download: mayDownload } = models;
    say(this.#summary, summaryOf(models));
    note(this.#hub, hubWords(models));
    note(this.#refusal, refusal === null ? '' : `Models can be used here, but not downloaded. ${refusal}`);
    note(this.#grounds, groundsWords(models));
    this.#other.hidden = !mayDownload;
    const names = new Set(data.map(({ id }) => id));
    for (const [name, { element }] of this.#rows) {
      if (names.has(name)) continue;
      element.remove();
      this.#rows.delete(name);
    }
    let next = this.#list.firstElementChild;
    for (const entry of data) {
      const row = this.#rowOf(entry, mayDownload);
      if (row.element === next) next = next.nextElementSibling;
      else this.#list.insertBefore(row.element, next);
    }
  }

  #rowOf(entry: OfferedEntry, mayDownload: boolean): CatalogueRow {
    const { id } = entry;
    let row = this.#rows.get(id);
    if (row === undefined) {
      row = new CatalogueRow(id, (action) => void this.#act(id, action));
      this.#rows.set(id, row);
    }
    const doing = this.#doing.get(id) ?? null;
    row.update(entry, { mayDownload, doing, problem: this.#problems.get(id) ?? null });
    return row;
  }

  async #act(name: string, action: RowAction): Promise<void> {
    const [doing, done, work] = this.#workOf(name, action);
    this.#doing.set(name, doing);
    this.#problems.delete(name);
    say(this.#said, `${doing} ${name}`);
    this.#show();
    try {
      await work();
      say(this.#said, done);
    } catch (error) {
      if (!(error instanceof CatalogueProblem)) throw error;
      this.#problems.set(name, error.message);
      say(this.#said, error.message);
    } finally {
      this.#doing.delete(name);
      this.#show();
      void this.#look();
    }
  }

  #workOf(name: string, action: RowAction): [doing: string, done: string, work: () => Promise<void>] {
    switch (action) {
      case 'Download':
      case 'Resume':
        return ['Starting', `${name} is being downloaded.`, () => this.#client.download(name)];
      case 'Cancel':
        return [
          'Cancelling',
          `The download of ${name} is cancelled; what has come is kept.`,
          () => this.#client.cancel(name),
        ];
      case 'Use':
        return [
          'Loading',
          `${name} is ready.`,
          async () => {
            await this.#client.load(name);
            this.#page.use(name);
          },
        ];
    }
  }

  /** For models that the list does not have. */
  #otherForm(): HTMLFormElement {
    const field = el('input', {
      class: 'field',
      id: 'catalogue-other',
      type: 'text',
      placeholder: 'ORG/NAME or ORG/NAME:QUANT',
      maxlength: 200,
      required: true,
      autocomplete: 'off',
      spellcheck: 'false',
    });
    return el(
      'form',
      { class: 'catalogue-other' },
      [
        el('label', { for: 'catalogue-other' }, ['Another model of the hub']),
        el('div', { class: 'catalogue-other-row' }, [
          field,
          el('button', { class: 'button', type: 'submit' }, ['Download']),
        ]),
      ],
      {
        submit: (event) => {
          event.preventDefault();
          const name = field.value.trim();
          if (name === '' || this.#doing.has(name)) return;
          void this.#act(name, 'Download').then(() => {
            if (!this.#problems.delete(name)) field.value = '';
          });
        },
      },
    );
  }
}

/** True while an answer of a moment later would be another one. */
function isChanging({ data, hub, read_bytes_per_second: rate }: OfferedModels): boolean {
  return (
    hub.state === 'asking' ||
    rate === null ||
    data.some(({ state, fits, problem }) => {
      return state === 'downloading' || (state === 'stored' && fits === null && problem === null);
    })
  );
}

function note(element: HTMLElement, text: string): void {
  element.hidden = text === '';
  say(element, text);
}
