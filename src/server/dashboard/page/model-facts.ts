import { el } from './dom.js';
import type { FormationEvent } from './feed.js';
import { count, plural } from './formation/words.js';
import { menu } from './menu.js';
import type { ChatModel } from './models.js';
import type { Session } from './session.js';

/** Part of the answer of POST /api/show that the page reads. */
interface ShownModel {
  details?: { family?: string; parameter_size?: string; quantization_level?: string; format?: string };
  model_info?: Record<string, unknown>;
  capabilities?: string[];
}

/** What the page knows besides when the facts are opened. */
export interface KnownFacts {
  model: ChatModel;
  /** null: nothing was told yet. */
  blocks: FormationEvent['blocks'] | null;
}

/** Menu in the header with what is known of the model: its size, its precision, its context and its KV cache. */
export class ModelFacts {
  readonly element: HTMLDetailsElement;
  readonly #session: Session;
  readonly #known: () => KnownFacts | null;
  readonly #list = el('dl', { class: 'facts-list' });

  constructor(session: Session, known: () => KnownFacts | null) {
    this.#session = session;
    this.#known = known;
    this.element = menu({ name: 'About the model', kind: 'facts' }, [this.#list], () => void this.#show());
    this.element.hidden = true;
  }

  async #show(): Promise<void> {
    const known = this.#known();
    if (known === null) return this.#list.replaceChildren();
    this.#fill(factsOf(known, {}));
    const shown = await this.#ask(known.model.id);
    // Another model may have been chosen meanwhile.
    if (this.#known()?.model.id === known.model.id) this.#fill(factsOf(known, shown));
  }

  /** What the server says of the model's files; nothing where it does not say. */
  async #ask(model: string): Promise<ShownModel> {
    const response = await this.#session.post('api/show', { model }).catch(() => null);
    return response?.ok ? ((await response.json()) as ShownModel) : {};
  }

  #fill(facts: readonly Fact[]): void {
    this.#list.replaceChildren(
      ...facts.flatMap(([name, value]) => [el('dt', {}, [name]), el('dd', {}, [value])]),
    );
  }
}

type Fact = readonly [name: string, value: string];

/** The facts that are known, as names and values. */
export function factsOf({ model, blocks }: KnownFacts, shown: ShownModel): Fact[] {
  const { family, parameter_size: size, quantization_level: precision, format } = shown.details ?? {};
  const info = shown.model_info ?? {};
  const number = (ending: string) => {
    const [, value] = Object.entries(info).find(([name]) => name.endsWith(ending)) ?? [];
    return typeof value === 'number' ? count(value) : undefined;
  };
  const abilities = (shown.capabilities ?? []).filter((one) => one !== 'completion');
  const facts: [string, string | undefined][] = [
    ['Name', model.id],
    ['Adapter of', model.parent ?? undefined],
    ['Architecture', family],
    ['Parameters', size],
    // The engine's own files are no format of their own.
    ['Weights', [precision, format === 'engine' ? '' : format].filter(Boolean).join(', ')],
    ['Layers', number('.block_count')],
    ['Width', number('.embedding_length')],
    ['Attention heads', number('.attention.head_count')],
    ['KV heads', number('.attention.head_count_kv')],
    ['Vocabulary', number('.vocab_size')],
    ['Context', plural(model.max_model_len, 'token')],
    ['KV cache', blocks === null ? undefined : plural(blocks.count * blocks.tokensPerBlock, 'token')],
    ['Can use', abilities.join(', ')],
  ];
  return facts.filter((fact): fact is [string, string] => fact[1] !== undefined && fact[1] !== '');
}
