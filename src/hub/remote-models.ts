import { messageOf } from '../../base/error-text.js';
import { HubError } from '../errors/user-errors.js';
import { A_MODEL, quantOf } from './chosen-files.js';
import type { AskOptions, RemoteFile } from './hub-client.js';
import { parseRepository, type Repository } from './repository.js';
import type { HubSettings } from './settings.js';

/**
 * Whether the hub answers.
 *
 *   unknown       it was not asked yet
 *   asking        it is being asked
 *   reachable     it answered
 *   unreachable   it did not, with the reason
 *   offline       HF_HUB_OFFLINE forbids to ask
 */
export interface HubReach {
  state: 'unknown' | 'asking' | 'reachable' | 'unreachable' | 'offline';
  reason: string | null;
}

/** What the hub says of a model: its files, or why it has none. */
export type RemoteFacts = { files: readonly RemoteFile[]; bytes: number } | { problem: string };

interface Answer {
  /** All files of the repository, for other precisions of it. */
  files: readonly RemoteFile[];
}

/** Milliseconds for which an answer holds, and for which the hub is left alone after it could not be reached. */
const FRESH_MS = 3_600_000;
const REST_MS = 30_000;
/** Milliseconds of one look. */
const MAX_LOOK_MS = 30_000;
/** Repositories that are asked for at the same time, and in one look. */
const AT_ONCE = 4;
const MAX_REPOSITORIES = 50;

type Ask = (repository: Repository, settings: HubSettings, options: AskOptions) => Promise<Answer>;

/** What the hub has of some models, asked once in a while and never waited for. */
export class RemoteModels {
  readonly #settings: () => HubSettings;
  readonly #ask: Ask;
  readonly #answers = new Map<string, Answer | { problem: string }>();
  #reach: HubReach = { state: 'unknown', reason: null };
  /** When the hub may be asked again, on the clock of `performance`. */
  #nextMs = 0;
  readonly #close = new AbortController();

  /** @param settings read at each look @param ask tests bring their own */
  constructor(settings: () => HubSettings, ask: Ask = askMain) {
    this.#settings = settings;
    this.#ask = ask;
  }

  get reach(): HubReach {
    return this.#reach;
  }

  /** Begins to ask for what is not known of the models, unless that was done shortly before. */
  look(names: readonly string[]): void {
    const now = performance.now();
    const ids = [...new Set(names.flatMap((name) => parseRepository(name)?.id ?? []))];
    const isFresh = now < this.#nextMs;
    const wanted = isFresh ? ids.filter((id) => !this.#answers.has(id)) : ids;
    if (this.#reach.state === 'asking' || this.#close.signal.aborted) return;
    if (wanted.length === 0 || (isFresh && this.#reach.state !== 'reachable')) return;
    let settings: HubSettings;
    try {
      settings = this.#settings();
    } catch (error) {
      this.#end('unreachable', messageOf(error));
      return;
    }
    if (settings.isOffline) {
      this.#end('offline', 'HF_HUB_OFFLINE forbids to ask the hub.');
      return;
    }
    this.#reach = { state: 'asking', reason: null };
    void this.#lookAt(wanted.slice(0, MAX_REPOSITORIES), settings);
  }

  /** What is known of a model; null: nothing. */
  of(name: string): RemoteFacts | null {
    const repository = parseRepository(name);
    const answer = repository === null ? undefined : this.#answers.get(repository.id);
    if (repository === null || answer === undefined) return null;
    if ('problem' in answer) return answer;
    try {
      const paths = answer.files.map(({ path }) => path);
      const chosen = new Set(A_MODEL.choose(paths, repository).paths);
      const files = answer.files.filter(({ path }) => chosen.has(path));
      return { files, bytes: files.reduce((sum, { size }) => sum + size, 0) };
    } catch (error) {
      if (error instanceof HubError) return { problem: error.message };
      throw error;
    }
  }

  /** The name of the model to which a file of a repository belongs: with its precision, where the file's name has one. */
  nameOf(id: string, hashes: ReadonlySet<string>): string {
    const answer = this.#answers.get(id);
    if (answer === undefined || 'problem' in answer) return id;
    const file = answer.files.find(({ path, hash }) => hashes.has(hash) && /\.gguf$/i.test(path));
    const quant = file === undefined ? '' : quantOf(file.path);
    return quant === '' ? id : `${id}:${quant}`;
  }

  /** Asks no more. */
  close(): void {
    this.#close.abort(new Error('The server is shutting down.'));
  }

  async #lookAt(ids: string[], settings: HubSettings): Promise<void> {
    const signal = AbortSignal.any([this.#close.signal, AbortSignal.timeout(MAX_LOOK_MS)]);
    let reason: string | null = null;
    let answered = 0;
    const one = async (): Promise<void> => {
      for (let id = ids.shift(); id !== undefined && reason === null; id = ids.shift()) {
        try {
          this.#answers.set(id, await this.#ask({ id, quant: null }, settings, { fetch, signal }));
          answered++;
        } catch (error) {
          // What the hub says of one repository says nothing of the others.
          if (error instanceof HubError && error.fault === 'refused') {
            this.#answers.set(id, { problem: error.message });
            answered++;
          } else reason = signal.aborted ? 'The hub did not answer in time.' : messageOf(error);
        }
      }
    };
    // One question first: where nothing can be reached the others would wait for nothing.
    const rest = ids.splice(1);
    await one();
    if (reason === null) {
      ids.push(...rest);
      await Promise.all(Array.from({ length: AT_ONCE }, one));
    }
    this.#end(reason === null || answered > 0 ? 'reachable' : 'unreachable', reason);
  }

  #end(state: HubReach['state'], reason: string | null): void {
    this.#reach = { state, reason };
    this.#nextMs = performance.now() + (state === 'reachable' && reason === null ? FRESH_MS : REST_MS);
  }
}

async function askMain(repository: Repository, settings: HubSettings, options: AskOptions): Promise<Answer> {
  const { askHub } = await import('./hub-client.js');
  return askHub(repository, 'main', settings, options);
}
