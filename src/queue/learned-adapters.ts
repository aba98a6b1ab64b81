import { field, says } from '../../base/named-text.js';
import { ParameterError } from '../../callbacks/sampling-params.js';
import type { Tensor } from '../../callbacks/types.js';
import type { AdapterRoom } from '../../callbacks/worker-messages.js';
import type { AdapterCard, ModelCard } from '../../cluster/nats/beat.js';
import type { ModuleName } from '../../models/adapters/module-ids.js';
import type { TextModel, TokenEngine } from '../generation/text-model.js';
import { AdapterError } from '../serving/adapters/adapter-error.js';
import type { AdapterSet, LoadedAdapter } from '../serving/adapters/model-adapters.js';

const OF_WORKERS = 'the adapters of a gateway are those of its workers (skein work --lora NAME=PATH)';

/** Milliseconds for which an adapter stays that no worker has any more: its worker may be restarting. */
const KEPT_MS = 60_000;
const NO_ROOM: AdapterRoom = {
  maxAdapters: 0,
  maxRank: 0,
  maxBytes: 0,
  hostPages: 0,
  devicePages: 0,
  width: 0,
  rowsPerPage: 0,
  rankUnit: 1,
};

/** The LoRA adapters that the workers of a model have. They are loaded there, and requests name them. */
export class LearnedAdapters implements AdapterSet {
  readonly #model: TextModel;
  /** Cards of the workers that are there. */
  readonly #cards: () => readonly ModelCard[];
  /** By name and digest: two requests for the same adapter get the same one. */
  readonly #known = new Map<string, LoadedAdapter>();
  /** By name: as a worker had it last, and when. */
  readonly #last = new Map<string, { adapter: LoadedAdapter; seenMs: number }>();
  #nextTaskId = 1n;

  constructor(model: TextModel, cards: () => readonly ModelCard[]) {
    this.#model = model;
    this.#cards = cards;
  }

  /** Of the first worker that has any: one without adapters may have been there first. */
  get room(): AdapterRoom {
    const room = this.#cards().find(({ adapterRoom }) => adapterRoom !== null)?.adapterRoom;
    return (room as unknown as AdapterRoom | undefined) ?? NO_ROOM;
  }

  get changes(): number {
    this.list();
    return this.#known.size;
  }

  /** Those of the present workers, and for a while those of earlier ones, since others may come. */
  list(): readonly LoadedAdapter[] {
    const nowMs = performance.now();
    const byName = new Map<string, LoadedAdapter>();
    const cards = this.#cards();
    for (const { adapters } of cards) {
      for (const card of adapters) if (!byName.has(card.name)) byName.set(card.name, this.#learned(card));
    }
    for (const [name, adapter] of byName) this.#last.set(name, { adapter, seenMs: nowMs });
    for (const [name, { adapter, seenMs }] of this.#last) {
      if (byName.has(name)) continue;
      if (cards.length === 0 || nowMs - seenMs < KEPT_MS) byName.set(name, adapter);
      else this.#last.delete(name);
    }
    return [...byName.values()];
  }

  #learned(card: AdapterCard): LoadedAdapter {
    const { name, digest, rank, bytes } = card;
    const key = `${name}\0${digest}`;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const learned: LoadedAdapter = {
      name,
      path: '',
      rank,
      modules: card.modules as ModuleName[],
      bytes,
      digest,
      created: Math.floor(Date.now() / 1000),
      taskId: this.#nextTaskId++,
      pages: 0,
      weights: null,
      model: withAdapterName(this.#model, name),
    };
    this.#known.set(key, learned);
    return learned;
  }

  find(name: string): LoadedAdapter | undefined {
    return this.list().find((adapter) => adapter.name === name);
  }

  has(name: string): boolean {
    return this.find(name) !== undefined;
  }

  get(name: string): LoadedAdapter {
    const adapter = this.find(name);
    if (adapter !== undefined) return adapter;
    throw new AdapterError(`There is no adapter '${name}'; ${OF_WORKERS}.`, 'unknown');
  }

  load(name: string): Promise<LoadedAdapter> {
    return Promise.reject(
      new AdapterError(`The adapter '${name}' cannot be loaded here: ${OF_WORKERS}.`, 'none'),
    );
  }

  unload(name: string): LoadedAdapter {
    throw new AdapterError(`The adapter '${name}' cannot be unloaded here: ${OF_WORKERS}.`, 'none');
  }

  fromTensors(inputs: Record<string, Tensor>): null {
    const [name] = Object.keys(inputs);
    if (name === undefined) return null;
    throw new ParameterError(name, says`${field(name)} is refused: ${OF_WORKERS}, and requests name them.`);
  }

  inFlight(): { running: string[]; waiting: string[] } {
    return { running: [], waiting: [] };
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

/** The same model, all of whose requests have the adapter of this name. */
function withAdapterName(model: TextModel, adapterName: string): TextModel {
  const { engine } = model;
  const adapted: TokenEngine = { submit: (request) => engine.submit({ ...request, adapterName }) };
  const { submitSeveral, checkRoom, checkEngine } = engine;
  if (submitSeveral !== undefined)
    adapted.submitSeveral = (request) => submitSeveral.call(engine, { ...request, adapterName });
  if (checkRoom !== undefined) adapted.checkRoom = (key) => checkRoom.call(engine, key);
  if (checkEngine !== undefined)
    adapted.checkEngine = (fingerprint) => checkEngine.call(engine, fingerprint, adapterName);
  return {
    ...model,
    get maxInputLen() {
      return model.maxInputLen;
    },
    get maxSeqLen() {
      return model.maxSeqLen;
    },
    engine: adapted,
  };
}
