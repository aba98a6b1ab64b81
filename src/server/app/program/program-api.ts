import { basename } from 'node:path';
import { skeinVersion } from '../../../../base/package-info.js';
import { lateFetcher } from '../../../generation/pictures/fetch/late-fetcher.js';
import { LiveModels } from '../../../serving/model-directory.js';
import type { ModelOptions } from '../../../serving/model-options.js';
import type { RunningModel } from '../../../serving/running-model.js';
import { servedModel } from '../../../serving/serve-model.js';
import { DEFAULT_MAX_LOG_PROBS } from '../../../serving/served-model.js';
import { Batches } from '../../batches/batches.js';
import { FileStore } from '../../files/file-store.js';
import { NO_METRICS } from '../../metrics/metrics.js';
import { ApiKeys } from '../../web/access/api-keys.js';
import { DEFAULT_MAX_BODY_BYTES } from '../../web/bodies/read-json.js';
import { MemoryLedger } from '../../web/memory/held-memory.js';
import type { ServerLog } from '../../web/server-log.js';
import { ServerState } from '../../web/server-state.js';
import { createApp } from '../app.js';
import { heldMemoryLimitBeside } from '../held-memory-limit.js';
import { dashboardFileRoute, dashboardRoute } from '../routes/dashboard.js';
import { docsFileRoute, docsRoute } from '../routes/documentation.js';
import { type FetchInput, type FetchOptions, isRequest, requestOf } from './program-request.js';

const DEFAULT_MAX_QUEUED = 256;
/** Requests of batches at once: the others are for clients that wait. */
const BATCH_REQUESTS = 4;

/** Pages for browsers, whose addresses begin at the server's own root. */
const PAGES = [dashboardRoute, dashboardFileRoute, docsRoute, docsFileRoute];

/** The API of a model inside another program, which has the sockets, the keys and the log. */
export class ProgramApi {
  readonly #app: ReturnType<typeof createApp>;
  readonly #batches: Batches;

  constructor(loaded: RunningModel<'generator'>, options: ModelOptions) {
    const models = new LiveModels();
    models.add(
      servedModel(loaded, {
        id: loaded.info.name,
        aliases: [],
        fileName: basename(options.model),
        maxActiveRequests: options.maxActiveRequests,
        maxQueueSize: options.maxQueuedRequests ?? DEFAULT_MAX_QUEUED,
        maxLogProbs: DEFAULT_MAX_LOG_PROBS,
        defaultMaxTokens: undefined,
        toolCallParser: 'auto',
        reasoningParser: 'auto',
      }),
    );
    const files = new FileStore();
    const apiKeys = new ApiKeys([]);
    const ofBatches = { files, log: QUIET, apiKeys, maxRequests: BATCH_REQUESTS };
    this.#batches = new Batches({ ...ofBatches, maxLineBytes: DEFAULT_MAX_BODY_BYTES });
    this.#app = createApp({
      models,
      state: new ServerState(models),
      metrics: NO_METRICS,
      version: skeinVersion(),
      log: QUIET,
      apiKeys,
      ledger: new MemoryLedger({ limit: heldMemoryLimitBeside([loaded], DEFAULT_MAX_BODY_BYTES) }),
      files,
      batches: this.#batches,
      withoutRoutes: PAGES,
      fetchedPictures: options.allowImageUrls ? lateFetcher() : null,
    });
    this.#batches.start();
  }

  /**
   * Answers a request, as `fetch` takes it, by a route of the API. Where it is given as an address, an aborted signal rejects with its
   * reason, as clients expect; servers that mount the API get an answer to each Request.
   */
  async fetch(input: FetchInput, options: FetchOptions): Promise<Response> {
    const request = requestOf(input, options);
    const answer = await this.#app.fetch(request);
    if (!isRequest(input)) request.signal.throwIfAborted();
    return answer;
  }

  close(): Promise<void> {
    return this.#batches.close();
  }
}

/** The program sees what goes wrong in the answers; a failure of the server's own becomes a warning of the process. */
const QUIET: ServerLog = {
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: (fields, message) => {
    const { err } = fields as { err?: unknown };
    const why = err instanceof Error ? `: ${err.message}` : '';
    process.emitWarning(`${message}${why}`, { type: 'SkeinWarning', code: 'SKEIN_API' });
  },
};
