import { noteFreed } from '../../../base/buffer-pool.js';
import { type Name, type NamedText, option, says } from '../../../base/named-text.js';
import { retell, textOf } from '../../../base/skein-error.js';
import { MAX_ADAPTER_SLOTS } from '../../../callbacks/options/peft-cache-options.js';
import type { PieceSource } from '../../../callbacks/piece-source.js';
import { HostClosedError, type TokenPiece, type TokenRequest } from '../../../callbacks/token-request.js';
import type { Tensor } from '../../../callbacks/types.js';
import type { AdapterRoom } from '../../../callbacks/worker-messages.js';
import { type AdapterInputs, readAdapterInputs } from '../../../engine/intake/adapter-inputs.js';
import { pagesOfAdapter, smallerCache } from '../../../engine/peft/page-sizes.js';
import type { AdapterWeights } from '../../../models/adapters/adapter-weights.js';
import { moduleName } from '../../../models/adapters/module-ids.js';
import { CheckpointError } from '../../../models/checkpoints/checkpoint.js';
import type { ModelConfig } from '../../../models/model-config.js';
import type { TextModel, TokenEngine } from '../../generation/text-model.js';
import { AdapterError } from './adapter-error.js';
import type { AdapterInfo } from './adapter-info.js';
import { checkAdapterName } from './adapter-name.js';
import { AdapterReader, type ReadAdapter } from './adapter-reader.js';

/** A loaded adapter, with the model that has it. */
export interface LoadedAdapter extends AdapterInfo {
  /** Number by which the engine knows these weights; no other adapter of the model ever has it. */
  readonly taskId: bigint;
  /** Digest of its weights. */
  readonly digest: string;
  /** Pages that it takes of the engine's host cache. */
  readonly pages: number;
  readonly model: TextModel;
  /** null: they are elsewhere. */
  readonly weights: AdapterWeights | null;
}

/** Most adapters of a model: as many as one iteration can have at most. */
const MAX_ADAPTERS = MAX_ADAPTER_SLOTS;

/** The engine's part in the adapters of a model. */
export interface AdapterBase {
  model: TextModel;
  config: ModelConfig;
  room: AdapterRoom;
  /** Announces that no more requests with this adapter will come. */
  forget(taskId: bigint): void;
  /** Numbers of the adapters of requests in flight. */
  inFlight(): { running: ReadonlySet<bigint>; waiting: ReadonlySet<bigint> };
}

/**
 * The LoRA adapters of a running model, by name. They come and go while it answers:
 *
 *   load    --> reader's thread --> weights in memory that the engine's thread shares --> a model of its own, with the same engine
 *   request --> that model      --> the host, which sends the weights to the engine where they are not held there
 *   unload  --> requests in flight go on; the weights go with the last of them
 *
 * All of them together are no larger than the engine's host cache, so that none drives out another that is in use.
 */
export class ModelAdapters {
  readonly #base: AdapterBase;
  readonly #reader = new AdapterReader();
  readonly #loaded = new Map<string, LoadedAdapter>();
  /** Names of adapters that are being read. */
  readonly #reading = new Set<string>();
  #nextTaskId = 1n;
  #changes = 0;
  #isClosed = false;

  constructor(base: AdapterBase) {
    this.#base = base;
  }

  get room(): AdapterRoom {
    return this.#base.room;
  }

  /** Number of times that an adapter came or went. */
  get changes(): number {
    return this.#changes;
  }

  /** Adapters in the order of their loading. */
  list(): readonly LoadedAdapter[] {
    return [...this.#loaded.values()];
  }

  find(name: string): LoadedAdapter | undefined {
    return this.#loaded.get(name);
  }

  /** The name is that of an adapter that is loaded, or being loaded. */
  has(name: string): boolean {
    return this.#loaded.has(name) || this.#reading.has(name);
  }

  /** @throws AdapterError where no adapter has this name */
  get(name: string): LoadedAdapter {
    const adapter = this.#loaded.get(name);
    if (adapter !== undefined) return adapter;
    const names = [...this.#loaded.keys()].map((one) => `'${one}'`);
    const known = names.length === 0 ? 'no adapter' : names.slice(0, 20).join(', ');
    throw new AdapterError(`There is no adapter '${name}'; the model has ${known}.`, 'unknown');
  }

  /**
   * Reads an adapter and takes it in. @param path a folder of PEFT, a GGUF file of llama.cpp, or a folder with one
   * @param replace replaces one of this name; its requests in flight continue as they began
   * @param within a folder, without links, in which its files have to lie; default: they may lie anywhere
   * @throws AdapterError; CheckpointError for files that are no such adapter; HelperBusyError
   */
  async load(
    name: string,
    path: string,
    {
      replace = false,
      signal,
      within,
    }: {
      replace?: boolean | undefined;
      signal?: AbortSignal | undefined;
      within?: string | undefined;
    } = {},
  ): Promise<LoadedAdapter> {
    const { room, config } = this.#base;
    if (this.#isClosed) throw new HostClosedError('The model is closed and takes no more adapters.');
    this.#checkName(name, replace);
    this.#reading.add(name);
    try {
      const limits = { maxRank: room.maxRank, maxBytes: room.maxBytes };
      const read = await this.#reader.read({ path, config, limits, within: within ?? null }, signal);
      return this.#take(name, path, read, room);
    } catch (error) {
      // Others are not of this adapter alone: one reason may end several loads.
      if (error instanceof AdapterError || error instanceof CheckpointError)
        retell(error, says`The adapter '${name}' cannot be loaded: ${inOptions(textOf(error), room)}`);
      throw error;
    } finally {
      this.#reading.delete(name);
    }
  }

  /**
   * An adapter that a request brings as tensors, which has no name here; null: it brings none.
   * @throws ParameterError that names the tensor
   */
  fromTensors(inputs: Record<string, Tensor>): AdapterInputs | null {
    const { room, config } = this.#base;
    return readAdapterInputs(inputs, { model: config, maxRank: room.maxRank, maxBytes: room.maxBytes });
  }

  /**
   * From now on no request finds the adapter; those in flight continue.
   * @throws AdapterError where no adapter has this name
   */
  unload(name: string): LoadedAdapter {
    const adapter = this.get(name);
    this.#loaded.delete(name);
    this.#forget(adapter);
    this.#changes++;
    return adapter;
  }

  /** Names of the adapters of requests in the engine, and of those that wait for a place in it. */
  inFlight(): { running: string[]; waiting: string[] } {
    const { running, waiting } = this.#base.inFlight();
    const namesOf = (ids: ReadonlySet<bigint>) =>
      this.list().flatMap(({ name, taskId }) => (ids.has(taskId) ? [name] : []));
    return { running: namesOf(running), waiting: namesOf(waiting) };
  }

  /** Reads no more. */
  close(): Promise<void> {
    this.#isClosed = true;
    return this.#reader.close();
  }

  #forget({ taskId, bytes }: LoadedAdapter): void {
    this.#base.forget(taskId);
    noteFreed(bytes);
  }

  #checkName(name: string, replace: boolean): void {
    checkAdapterName(name);
    if (this.#reading.has(name))
      throw new AdapterError(`The adapter '${name}' is being loaded already.`, 'taken');
    if (this.#loaded.has(name) && !replace) {
      throw new AdapterError(
        `There is an adapter '${name}' already; unload it first, or load the other with { replace: true }.`,
        'taken',
      );
    }
    if (this.#loaded.size + this.#reading.size >= MAX_ADAPTERS && !this.#loaded.has(name)) {
      throw new AdapterError(
        `The model has ${MAX_ADAPTERS} adapters, which is the limit; unload one.`,
        'full',
      );
    }
  }

  #checkRoom(name: string, pages: number, room: AdapterRoom): void {
    const megabytes = (count: number) =>
      Number(((count * room.rowsPerPage * room.width * 4) / 1e6).toPrecision(3));
    if (pages > room.devicePages) {
      throw new AdapterError(
        says`it takes ${megabytes(pages)} MB where iterations read adapters, which may take ${megabytes(room.devicePages)} MB there (${option('peftCacheManagerConfig.deviceCachePercent')}).`,
        'full',
      );
    }
    const others = this.list().reduce((sum, one) => sum + (one.name === name ? 0 : one.pages), 0);
    if (others + pages > room.hostPages) {
      throw new AdapterError(
        says`it takes ${megabytes(pages)} MB, and others ${megabytes(others)} of the ${megabytes(room.hostPages)} MB that all may take together (${option('peftCacheManagerConfig.hostCacheSize')}).`,
        'full',
      );
    }
  }

  #take(name: string, path: string, { weights, digest }: ReadAdapter, room: AdapterRoom): LoadedAdapter {
    const pages = pagesOfAdapter(weights, room);
    try {
      this.#checkRoom(name, pages, room);
    } catch (error) {
      noteFreed(bytesOf(weights));
      throw error;
    }
    const taskId = this.#nextTaskId++;
    const adapter: LoadedAdapter = {
      name,
      path,
      rank: weights.maxRank,
      modules: weights.modules.map(moduleName),
      bytes: bytesOf(weights),
      created: Math.floor(Date.now() / 1000),
      taskId,
      digest,
      pages,
      weights,
      model: withAdapter(this.#base.model, { loraTaskId: taskId, adapter: weights, adapterName: name }),
    };
    const before = this.#loaded.get(name);
    if (before !== undefined) this.#forget(before);
    this.#loaded.set(name, adapter);
    this.#changes++;
    return adapter;
  }
}

/** The adapters of a model, wherever it runs. */
export type AdapterSet = Pick<ModelAdapters, keyof ModelAdapters>;

/** A sentence about an adapter's files, with the options that set its limits. */
function inOptions(text: NamedText, { hostPages, devicePages }: AdapterRoom): NamedText {
  if (typeof text === 'string') return text;
  const limits: Partial<Record<string, Name>> = {
    maxRank: option('peftCacheManagerConfig.maxAdapterSize'),
    maxBytes: smallerCache({ host: hostPages, device: devicePages }),
  };
  return text.map((part) => (typeof part !== 'string' && part.of === 'field' && limits[part.name]) || part);
}

function bytesOf({ moduleLayers }: AdapterWeights): number {
  return moduleLayers.reduce((sum, { a, b }) => sum + a.byteLength + b.byteLength, 0);
}

/** The same model, all of whose requests have this adapter. The host sends its weights to the engine where that does not hold them. */
function withAdapter(
  model: TextModel,
  own: Required<Pick<TokenRequest, 'loraTaskId' | 'adapter' | 'adapterName'>>,
): TextModel {
  const { engine } = model;
  const adapted: TokenEngine = {
    submit: (request): PieceSource<TokenPiece> => engine.submit({ ...request, ...own }),
  };
  const { submitSeveral, checkRoom } = engine;
  if (submitSeveral !== undefined)
    adapted.submitSeveral = (request) => submitSeveral.call(engine, { ...request, ...own });
  if (checkRoom !== undefined) adapted.checkRoom = (key) => checkRoom.call(engine, key);
  return { ...model, engine: adapted };
}
