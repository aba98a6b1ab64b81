import { SkeinError } from '../../../../../base/skein-error.js';
import { problemOf } from '../problem.js';
import type { Session } from '../session.js';

/** A model of GET /catalogue; what is null is not known. */
export interface OfferedEntry {
  id: string;
  state: 'loaded' | 'stored' | 'downloading' | 'partial' | 'absent';
  bytes: number | null;
  done_bytes: number | null;
  bytes_per_second: number | null;
  fits: boolean | null;
  cached_tokens: number | null;
  context_tokens: number | null;
  tokens_per_second: number | null;
  problem: string | null;
}

/** The answer of GET /catalogue. */
export interface OfferedModels {
  data: OfferedEntry[];
  more: number;
  memory_bytes: number;
  read_bytes_per_second: number | null;
  hub: { state: 'unknown' | 'asking' | 'reachable' | 'unreachable' | 'offline'; reason: string | null };
  may_download: boolean;
  download_refusal: string | null;
}

/** A request that failed; the message is for the reader. */
export class CatalogueProblem extends SkeinError {
  override name = 'CatalogueProblem';
  override readonly code = 'SKEIN_PAGE_CATALOGUE';
}

/** Asks the server for its catalogue, and to change it. */
export class CatalogueClient {
  readonly #session: Session;

  constructor(session: Session) {
    this.#session = session;
  }

  /** Null: the server has none, or does not show it without a key. @throws CatalogueProblem where it cannot be asked */
  async list(): Promise<OfferedModels | null> {
    const response = await this.#asked(this.#session.fetch('catalogue'));
    if (response.status === 404 || response.status === 401) return null;
    return (await (await succeeded(response)).json()) as OfferedModels;
  }

  /** Begins a download, or goes on with it; resolves when its first bytes have come. @throws CatalogueProblem */
  async download(model: string): Promise<void> {
    await succeeded(await this.#asked(this.#session.post('catalogue/downloads', { repository: model })));
  }

  /** Ends a download; one that is over already is no problem. @throws CatalogueProblem */
  async cancel(model: string): Promise<void> {
    const path = `catalogue/downloads/${model.split('/').map(encodeURIComponent).join('/')}`;
    const response = await this.#asked(this.#session.fetch(path, { method: 'DELETE' }));
    if (response.status !== 404) await succeeded(response);
  }

  /** Has a stored model loaded; resolves when it answers. @throws CatalogueProblem */
  async load(model: string): Promise<void> {
    await succeeded(await this.#asked(this.#session.fetch(`props?model=${encodeURIComponent(model)}`)));
  }

  #asked(answer: Promise<Response>): Promise<Response> {
    return answer.catch(() => {
      throw new CatalogueProblem('The server cannot be reached.');
    });
  }
}

async function succeeded(response: Response): Promise<Response> {
  if (response.ok) return response;
  throw new CatalogueProblem(await problemOf(response));
}
