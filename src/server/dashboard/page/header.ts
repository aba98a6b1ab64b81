import { el, icon, say } from './dom.js';
import type { Feed } from './feed.js';
import type { NextModel } from './model-choice.js';
import { ModelFacts } from './model-facts.js';
import type { ChatModel } from './models.js';
import type { Page } from './panels.js';
import type { RepositoryFeed } from './repository/repository-feed.js';
import { onThemeChange, setTheme, theme } from './theme.js';

const SUN = ['M8 5.2a2.8 2.8 0 1 0 0 5.6a2.8 2.8 0 0 0 0-5.6z', 'M8 1.2v1.4M8 13.4v1.4M1.2 8h1.4M13.4 8h1.4'];
const SUN_RAYS = 'M3.2 3.2l1 1M11.8 11.8l1 1M12.8 3.2l-1 1M4.2 11.8l-1 1';
const MOON = 'M13.2 9.6A5.6 5.6 0 0 1 6.4 2.8a5.6 5.6 0 1 0 6.8 6.8z';
const KEY = ['M10.3 2.2a3.5 3.5 0 1 0 0 7a3.5 3.5 0 0 0 0-7z', 'M7.8 8.2L2.4 13.6M4 12l1.8 1.8'];

type Sources = Pick<Page, 'feed' | 'repository' | 'session'>;

export interface HeaderActions {
  askKey(): void;
  choose(model: string): void;
}

/** Header of the page: models served, state of the connection, and the page's switches. */
export class Header {
  readonly #feed: Feed;
  readonly #repository: RepositoryFeed;
  readonly #models: ModelList;
  readonly #connection = el('span', { class: 'connection', role: 'status' });
  readonly #facts = el('span');
  readonly #about: ModelFacts;
  readonly #chatOnly = chatOnlySwitch();
  #model: ChatModel | null = null;
  /** When the engine was loaded, in milliseconds since 1970 on the server's clock; null: not known. */
  #sinceMs: number | null = null;

  constructor(root: HTMLElement, { feed, repository, session }: Sources, actions: HeaderActions) {
    this.#feed = feed;
    this.#repository = repository;
    this.#models = new ModelList((model) => actions.choose(model));
    this.#about = new ModelFacts(session, () => {
      if (this.#model === null) return null;
      return { model: this.#model, blocks: feed.formation?.blocks ?? null };
    });
    root.append(
      el('h1', { class: 'brand' }, [el('img', { src: 'dashboard/icon.svg', alt: '' }), 'Skein']),
      this.#models.element,
      this.#about.element,
      el('div', { class: 'header-facts' }, [this.#connection, this.#facts]),
      el('nav', { class: 'header-tools', 'aria-label': 'Page' }, [
        this.#chatOnly,
        el('a', { class: 'button quiet', href: 'docs' }, ['API']),
        el(
          'button',
          { class: 'button quiet icon', type: 'button', title: 'API key' },
          [label('API key'), icon(...KEY)],
          {
            click: () => actions.askKey(),
          },
        ),
        themeSwitch(),
      ]),
    );
    feed.on('state', () => this.#showConnection());
    repository.on('state', () => this.#showConnection());
    feed.on('formation', () => this.#showFacts());
    // The timer shows seconds until the next attempt, and minutes of uptime.
    setInterval(() => {
      this.#showConnection();
      this.#showFacts();
    }, 1000);
    this.#showConnection();
  }

  showModels(models: readonly ChatModel[], next: NextModel): void {
    const { model } = next;
    const base = models.find(({ id }) => id === (model?.parent ?? model?.id));
    this.#sinceMs = base === undefined ? null : 1000 * base.created;
    this.#model = model;
    this.#about.element.hidden = model === null;
    // Without a model that chats there is no chat to be alone with.
    this.#chatOnly.hidden = models.length === 0;
    this.#models.show(models, next);
    this.#showFacts();
  }

  #showConnection(): void {
    // Where no model generates text, the page still shows the others.
    const { state } = this.#feed.state.kind === 'idle' ? this.#repository : this.#feed;
    this.#connection.dataset.state = state.kind;
    const text = connectionText(state);
    say(this.#connection, text);
  }

  #showFacts(): void {
    const { formation } = this.#feed;
    const since = this.#sinceMs;
    const text =
      formation === null || since === null ? '' : `up ${duration((formation.timeMs - since) / 1000)}`;
    say(this.#facts, text);
  }
}

function connectionText(state: Feed['state']): string {
  if (state.kind === 'live') return 'Live';
  if (state.kind === 'connecting') return 'Connecting';
  if (state.kind === 'locked') return 'Needs an API key';
  if (state.kind === 'idle') return state.reason;
  if (state.kind === 'gone') return `${state.model} is gone`;
  const seconds = Math.max(0, Math.ceil((state.retryAtMs - performance.now()) / 1000));
  return `${state.reason} Trying again in ${seconds} s`;
}

function themeSwitch(): HTMLButtonElement {
  const button = el('button', { class: 'button quiet icon', type: 'button' }, [], {
    click: () => setTheme(theme() === 'dark' ? 'light' : 'dark'),
  });
  const show = () => {
    const isDark = theme() === 'dark';
    const text = isDark ? 'Light colours' : 'Dark colours';
    button.title = text;
    button.replaceChildren(label(text), isDark ? icon(...SUN, SUN_RAYS) : icon(MOON));
  };
  onThemeChange(show);
  show();
  return button;
}

function label(text: string): HTMLElement {
  return el('span', { class: 'visually-hidden' }, [text]);
}

/** Text of a duration: 42 s, 12 min, 3 h 20 min, 5 d 2 h. */
function duration(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

const NAME = 'view';
const CHAT = 'chat';

/** Switch of the view: the whole page, or the chat alone. The address has it (`?view=chat`), so that it can be kept and sent. */
function chatOnlySwitch(): HTMLButtonElement {
  const root = document.documentElement;
  const button = el('button', { class: 'button quiet', type: 'button' }, ['Chat only'], {
    click: () => {
      const address = new URL(location.href);
      if (root.dataset.view === CHAT) address.searchParams.delete(NAME);
      else address.searchParams.set(NAME, CHAT);
      history.replaceState(null, '', address);
      show();
    },
  });
  const show = () => {
    const isAlone = new URL(location.href).searchParams.get(NAME) === CHAT;
    if (isAlone) root.dataset.view = CHAT;
    else delete root.dataset.view;
    button.setAttribute('aria-pressed', String(isAlone));
  };
  show();
  return button;
}

/** The name of the one model that generates text, or a list of them to choose from. */
class ModelList {
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
    // A reader who has just chosen in the list stays in it.
    if (models.length < 2 && gone === null && document.activeElement !== this.#select) {
      const name = models[0]?.id ?? '';
      this.element.replaceChildren(name);
      this.element.title = name;
      return;
    }
    const listed = JSON.stringify([models.map(({ id, parent }) => [id, parent]), gone]);
    // A reader may be in the list: it is rebuilt only where necessary.
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
