import { type BegunDownload, begunDownloads } from '../../hub/begun-downloads.js';
import { OFFERED, type OfferedModel } from '../../hub/offered-models.js';
import type { RemoteModels } from '../../hub/remote-models.js';
import { parseRepository, type Repository } from '../../hub/repository.js';
import type { ModelDirectory } from '../model-directory.js';
import type { ModelMeasure } from '../on-demand/model-measure.js';
import type { ModelStore, StoredModel } from '../on-demand/model-store.js';
import type { Catalogue, CatalogueEntry, EntryState } from './catalogue-types.js';
import type { Downloads } from './downloads.js';
import { type Expectation, expectationOf } from './expectation.js';
import type { Measures } from './measures.js';
import type { ReadingSpeed } from './reading-speed.js';

export interface CatalogueParts {
  /** Models of the folder, into which downloads come. */
  store: ModelStore;
  /** Models that answer now. */
  models: ModelDirectory;
  downloads: Downloads;
  remote: RemoteModels;
  measures: Measures;
  speed: ReadingSpeed;
  /** Bytes of memory for all models that are loaded on demand. */
  memoryBytes: number;
}

/** Models of one list. */
const MAX_ENTRIES = 200;
const ORDER: readonly EntryState[] = ['loaded', 'downloading', 'partial', 'stored', 'absent'];
/** Bytes of a number in a KV cache, of a model that is not here: those of bf16. */
const CACHED_BYTES = 2;

interface Disk {
  stored: readonly StoredModel[];
  begun: Map<string, BegunDownload>;
}

/**
 * Models that this machine has or could have, with what they can be expected to do here.
 *
 *   folder   --> stored, measured by their headers
 *   hub      --> sizes of the models that are offered
 *   downloads, begun files --> how far they are
 */
export class ModelCatalogue {
  readonly #parts: CatalogueParts;
  /** A look at the disk that is under way, which all who ask meanwhile share. */
  #looking: Promise<Disk> | null = null;

  constructor(parts: CatalogueParts) {
    this.#parts = parts;
  }

  /**
   * @param isAdmin true: the hub is asked for what is not known of it, though nothing waits for its answer, and the list says why something
   * failed, which may name folders of the server
   */
  async list(isAdmin: boolean): Promise<Catalogue> {
    const { remote, downloads, speed, memoryBytes } = this.#parts;
    const bytesPerSecond = speed.bytesPerSecond;
    const { stored, begun } = await this.#disk();
    const offered = OFFERED.map(({ name }) => name);
    if (isAdmin) remote.look([...offered, ...begun.keys(), ...downloads.failed]);
    const entries = new Map<string, CatalogueEntry>();
    for (const model of stored) {
      const entry = this.#storedEntry(model, bytesPerSecond);
      if (entry !== null) entries.set(entry.name, entry);
    }
    const isHere = (name: string) =>
      entries.has(name) || stored.some((one) => one.isDefault && one.repository === name);
    for (const download of downloads.list()) {
      const { name, doneBytes, totalBytes, bytesPerSecond: rate } = download;
      const bytes = totalBytes === 0 ? null : totalBytes;
      entries.set(name, {
        ...this.#awayEntry(name, 'downloading', bytesPerSecond, bytes),
        doneBytes,
        bytesPerSecond: rate,
      });
    }
    for (const [id, one] of begun) {
      const name = this.#begunName(id, one);
      if (isHere(name) || downloads.list().some((running) => parseRepository(running.name)?.id === id))
        continue;
      entries.set(name, {
        ...this.#awayEntry(name, 'partial', bytesPerSecond, null),
        doneBytes: this.#doneBytes(name, one),
      });
    }
    for (const name of [...offered.filter((one) => this.#isOnHub(one)), ...downloads.failed]) {
      if (!isHere(name)) entries.set(name, this.#awayEntry(name, 'absent', bytesPerSecond, null));
    }
    const sorted = [...entries.values()].sort(byUse);
    const shown = sorted.slice(0, MAX_ENTRIES).map((entry) => (isAdmin ? entry : withoutReason(entry)));
    const more = sorted.length - shown.length;
    const hub = isAdmin ? remote.reach : { ...remote.reach, reason: null };
    return { entries: shown, more, memoryBytes, bytesPerSecond, hub };
  }

  /** Begins a download, or goes on with it. @throws as Downloads.begin */
  async download(repository: Repository): Promise<void> {
    await this.#parts.downloads.begin(repository);
  }

  /** Ends a download; what has come is kept. @returns false where there is none of this name */
  cancel(name: string): boolean {
    return this.#parts.downloads.cancel(name);
  }

  /** Asks and measures no more. */
  close(): void {
    this.#parts.remote.close();
    this.#parts.measures.close();
  }

  #disk(): Promise<Disk> {
    const { store } = this.#parts;
    this.#looking ??= Promise.all([store.list(), begunDownloads(store.folder)])
      .then(([stored, begun]) => ({ stored, begun }))
      .finally(() => {
        this.#looking = null;
      });
    return this.#looking;
  }

  /** Null: it generates no text. */
  #storedEntry(model: StoredModel, bytesPerSecond: number | null): CatalogueEntry | null {
    const { name, size } = model;
    const { measures, models } = this.#parts;
    const measured = measures.of(model);
    const measure = measured !== null && 'measure' in measured ? measured.measure : null;
    if (measure?.generates === false) return null;
    return {
      name,
      state: models.find(name) === undefined ? 'stored' : 'loaded',
      bytes: size,
      doneBytes: null,
      bytesPerSecond: null,
      expectation: this.#expectation(measure, bytesPerSecond),
      problem: measured !== null && 'problem' in measured ? measured.problem : null,
      contextTokens: measure?.contextTokens ?? null,
    };
  }

  /** A model that is not whole here. @param bytes of its files, where that is known; null: as the hub says */
  #awayEntry(
    name: string,
    state: EntryState,
    bytesPerSecond: number | null,
    bytes: number | null,
  ): CatalogueEntry {
    const { remote, downloads } = this.#parts;
    const facts = remote.of(name);
    const known = bytes ?? (facts !== null && 'bytes' in facts ? facts.bytes : null);
    const offered = OFFERED.find((one) => one.name === name);
    const measure = offered === undefined || known === null ? null : measureOf(offered, known);
    const refusal = facts !== null && 'problem' in facts ? facts.problem : null;
    return {
      name,
      state,
      bytes: known,
      doneBytes: null,
      bytesPerSecond: null,
      expectation: this.#expectation(measure, bytesPerSecond),
      problem: downloads.failureOf(name) ?? refusal,
      contextTokens: offered?.contextTokens ?? null,
    };
  }

  #expectation(
    measure: Omit<ModelMeasure, 'generates'> | null,
    bytesPerSecond: number | null,
  ): Expectation | null {
    return measure === null ? null : expectationOf(measure, this.#parts.memoryBytes, bytesPerSecond);
  }

  /** What the hub does not have, or shows only to others, is not offered. */
  #isOnHub(name: string): boolean {
    const facts = this.#parts.remote.of(name);
    return facts !== null && 'bytes' in facts;
  }

  /** The name of what was begun: by the hub's files where they are known, else that of the model of the repository that is offered. */
  #begunName(id: string, { parts }: BegunDownload): string {
    const ofRepository = (name: string) => parseRepository(name)?.id === id;
    const offered = OFFERED.find(({ name }) => ofRepository(name))?.name;
    const asked = this.#parts.downloads.failed.find(ofRepository);
    const facts = offered === undefined ? null : this.#parts.remote.of(offered);
    const isOffered = facts !== null && 'files' in facts && facts.files.some(({ hash }) => parts.has(hash));
    if (offered !== undefined && (facts === null || isOffered)) return offered;
    return asked ?? this.#parts.remote.nameOf(id, parts);
  }

  /** Bytes that are here of the model's files; of all files of its repository where these are not known. */
  #doneBytes(name: string, { bytes }: BegunDownload): number {
    const facts = this.#parts.remote.of(name);
    if (facts === null || !('files' in facts)) return [...bytes.values()].reduce((sum, one) => sum + one, 0);
    return facts.files.reduce((sum, { hash, size }) => sum + Math.min(size, bytes.get(hash) ?? 0), 0);
  }
}

function measureOf(
  { contextTokens, cachedNumbers, readShare }: OfferedModel,
  bytes: number,
): Omit<ModelMeasure, 'generates'> {
  return {
    weightBytes: bytes,
    readBytes: Math.round(readShare * bytes),
    cacheBytesPerToken: CACHED_BYTES * cachedNumbers,
    contextTokens,
  };
}

/** What a stored model lacks is for all who may ask it; what keeps one from being downloaded is not. */
function withoutReason(entry: CatalogueEntry): CatalogueEntry {
  return entry.state === 'stored' || entry.state === 'loaded' ? entry : { ...entry, problem: null };
}

/** What can be used first, then what fits, then the smaller one. */
function byUse(a: CatalogueEntry, b: CatalogueEntry): number {
  const place = (one: CatalogueEntry) => ORDER.indexOf(one.state);
  const misfit = (one: CatalogueEntry) => Number(one.expectation?.fits === false);
  return place(a) - place(b) || misfit(a) - misfit(b) || (a.bytes ?? 0) - (b.bytes ?? 0);
}
