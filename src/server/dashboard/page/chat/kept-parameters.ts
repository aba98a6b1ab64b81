/** The form of an answer's parameters as it was filled in: what differs from what the form begins with. */
export interface KeptParameters {
  system: string;
  /** Texts at which the answer ends, each in a line. */
  stop: string;
  /** Fields by their names in the API, as they were written. */
  fields: Readonly<Record<string, string>>;
}

/** Parameters with a name. */
export interface Preset extends KeptParameters {
  name: string;
}

/** A store of text in the browser: localStorage. */
export type TextStore = Pick<Storage, 'getItem' | 'setItem'>;

const PRESETS = 'skein-presets';
const OF_MODELS = 'skein-parameters';
export const MAX_PRESETS = 50;
/** Models of which the parameters are remembered: the one that was changed first makes room. */
export const MAX_MODELS = 50;
/** Characters of a system prompt that is kept. */
export const MAX_TEXT = 100_000;

/** Presets, and the parameters that each model was last asked with, in this browser; where it stores nothing, in this tab. */
export class ParameterStore {
  readonly #store: TextStore | null;
  #presets: Preset[];
  #models: (KeptParameters & { model: string })[];

  constructor(store: TextStore | null) {
    this.#store = store;
    this.#presets = read(store, PRESETS).flatMap((one) => {
      const kept = keptOf(one);
      const { name } = one as { name?: unknown };
      return kept !== null && typeof name === 'string' ? [{ ...kept, name }] : [];
    });
    this.#models = read(store, OF_MODELS).flatMap((one) => {
      const kept = keptOf(one);
      const { model } = one as { model?: unknown };
      return kept !== null && typeof model === 'string' ? [{ ...kept, model }] : [];
    });
  }

  /** By their names. */
  get presets(): readonly Preset[] {
    return this.#presets;
  }

  /** Keeps a preset, in place of one with its name. @returns the sentence that says why it is not kept; null: it is */
  savePreset(preset: Preset): string | null {
    const others = this.#presets.filter(({ name }) => name !== preset.name);
    if (others.length >= MAX_PRESETS) return `There are ${MAX_PRESETS} presets: delete one first.`;
    if (preset.system.length > MAX_TEXT) return `A system prompt of at most ${MAX_TEXT} characters is kept.`;
    this.#presets = [...others, preset].sort((one, other) => one.name.localeCompare(other.name));
    return this.#write(PRESETS, this.#presets) ? null : 'This browser keeps it in this tab alone.';
  }

  removePreset(name: string): void {
    this.#presets = this.#presets.filter((one) => one.name !== name);
    this.#write(PRESETS, this.#presets);
  }

  /** What a model was last asked with; null: nothing of its own. */
  of(model: string): KeptParameters | null {
    return this.#models.find((one) => one.model === model) ?? null;
  }

  remember(model: string, kept: KeptParameters): void {
    if (kept.system.length > MAX_TEXT) return;
    const others = this.#models.filter((one) => one.model !== model);
    this.#models = [...others, { ...kept, model }].slice(-MAX_MODELS);
    this.#write(OF_MODELS, this.#models);
  }

  #write(key: string, value: unknown): boolean {
    try {
      this.#store?.setItem(key, JSON.stringify(value));
      return this.#store !== null;
    } catch {
      // Full: it holds until the page is left.
      return false;
    }
  }
}

function read(store: TextStore | null, key: string): object[] {
  try {
    const value: unknown = JSON.parse(store?.getItem(key) ?? '[]');
    if (!Array.isArray(value)) return [];
    const objects = value.filter((one) => typeof one === 'object' && one !== null);
    return objects.slice(0, Math.max(MAX_PRESETS, MAX_MODELS));
  } catch {
    return [];
  }
}

/** The parameters in what was stored, which other pages of this address may have written; null: there are none. */
function keptOf(value: object): KeptParameters | null {
  const { system, stop, fields } = value as Record<string, unknown>;
  if (typeof system !== 'string' || typeof stop !== 'string') return null;
  if (typeof fields !== 'object' || fields === null) return null;
  const known = Object.entries(fields).filter(
    (entry): entry is [string, string] => typeof entry[1] === 'string',
  );
  return { system, stop, fields: Object.fromEntries(known) };
}
