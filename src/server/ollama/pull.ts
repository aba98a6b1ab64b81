import { asSentence } from '../../../base/sentences.js';
import { HubError } from '../../errors/user-errors.js';
import type { PullProgress } from '../../hub/pull.js';
import { parseRepository, type Repository } from '../../hub/repository.js';
import type { ModelLife } from '../answering/model-life.js';
import { STREAM_HEADERS } from '../answering/respond.js';
import { requireFolderAdmin } from '../web/access/auth.js';
import { ApiError, toApiError } from '../web/errors.js';
import { EventStream } from '../web/event-stream.js';
import type { Exchange } from '../web/exchange.js';
import { LINES } from './answer.js';
import { storedUnder } from './borrow.js';
import { errorBody, modelNotFound } from './errors.js';
import { servedUnder, spellingsOf } from './names.js';
import type { NameBody, PullBody } from './schemas.js';
import type { OllamaServices } from './services.js';

/** Milliseconds between two lines about one file. */
const LINE_MS = 100;

type Context = Pick<OllamaServices, 'models' | 'life' | 'apiKeys' | 'eventStream'>;

/** Answers POST /api/pull: downloads a model of the hub into the folder of models. */
export async function pull(
  context: Context,
  request: PullBody,
  { exchange, isLocal }: { exchange: Exchange; isLocal: boolean },
): Promise<Response> {
  const life = folderOf(context, exchange, isLocal);
  const repository = repositoryIn(nameOf(request));
  if (request.stream !== false) return pullInLines(context, life, repository, exchange);
  try {
    await life.pulls.pull(repository, () => {}, exchange.signal);
  } catch (error) {
    throw asApiError(error);
  }
  return Response.json({ status: 'success' });
}

/** Answers DELETE /api/delete: unloads a model, and deletes its files. */
export async function deleteModel(
  context: Context,
  request: NameBody,
  { exchange, isLocal }: { exchange: Exchange; isLocal: boolean },
): Promise<Response> {
  const life = folderOf(context, exchange, isLocal);
  const asked = nameOf(request);
  if (life.isShared) {
    throw refused(
      `The model '${asked}' is not deleted here: models of the hub's cache, which other programs use too, are deleted by skein rm, or by a server with --models-dir.`,
    );
  }
  const stored = await storedUnder(life, asked);
  if (stored === null) {
    if (servedUnder(context.models, asked) === undefined) throw modelNotFound(asked);
    throw refused(`The model '${asked}' is not one of the folder of models, and cannot be deleted here.`);
  }
  if (stored.repository !== null && life.pulls.isPulling(stored.repository)) {
    throw refused(`The model '${asked}' is being downloaded; it cannot be deleted meanwhile.`);
  }
  const served = context.models.find(stored.name);
  if (served !== undefined && !life.models.owns(served)) {
    throw refused(
      `The name '${stored.name}' is that of a model from elsewhere, which is served in place of the one of the folder; neither is deleted here.`,
    );
  }
  if (!(await life.store.holds(stored))) {
    throw refused(
      `The files of the model '${asked}' lie outside of the folder of models, where a link leads; they are not deleted here.`,
    );
  }
  await life.models.unload(stored.name);
  await life.store.remove(stored);
  return new Response(null, { status: 200 });
}

/** The folder of models, for those who may change it. @throws ApiError 403 */
function folderOf({ life, apiKeys }: Context, { terms: { caller } }: Exchange, isLocal: boolean): ModelLife {
  requireFolderAdmin(caller, apiKeys, isLocal);
  if (life !== null) return life;
  throw new ApiError(403, 'Models are pulled and deleted where the server was started with --models-dir.', {
    type: 'permission_error',
    code: 'no_models_dir',
  });
}

/** @throws ApiError 400 where a body names no model */
export function nameOf({ model, name }: NameBody): string {
  // Ollama's own client sends both, one of them empty.
  const asked = model || name;
  if (asked) return asked;
  throw new ApiError(400, "The field 'model' is required.", {
    param: 'model',
    code: 'missing_required_parameter',
  });
}

/** The repository of the hub that a name means. @throws ApiError 400 for any other name: of Ollama's own library there is none */
function repositoryIn(asked: string): Repository {
  for (const spelling of spellingsOf(asked)) {
    const repository = parseRepository(spelling);
    if (repository !== null)
      return repository.quant === 'latest' ? { ...repository, quant: null } : repository;
  }
  throw refused(
    `'${asked}' names no repository of the Hugging Face hub; ORG/NAME or ORG/NAME:QUANT is expected, such as hf.co/bartowski/Qwen2.5-0.5B-Instruct-GGUF:Q8_0.`,
  );
}

function refused(message: string): ApiError {
  return new ApiError(400, message, { param: 'model', code: 'invalid_value' });
}

/** Passes on the hub's message; the fault lies in the server's environment or the name. */
function asApiError(error: unknown): ApiError {
  if (!(error instanceof HubError)) return toApiError(error);
  return new ApiError(500, asSentence(error.message), { param: 'model', code: 'pull_failed' });
}

/** A line for each bit of progress. A slow reader misses some, but never the end. */
function pullInLines(
  context: Context,
  { pulls }: ModelLife,
  repository: Repository,
  { signal, connection, logError }: Exchange,
): Response {
  const leaving = new AbortController();
  const leave = () => leaving.abort(new Error('The client closed the request.'));
  signal.addEventListener('abort', leave, { once: true });
  if (signal.aborted) leave();
  const options = { ...context.eventStream, keepAliveText: LINES.keepAliveText };
  const stream = new EventStream(options, { onGone: leave, connection });
  const write = (fields: object) => stream.write(`${JSON.stringify(fields)}\n`);
  write({ status: 'pulling manifest' });
  const progress = new ProgressLines((fields) => {
    if (!stream.isBehind) write(fields);
  });
  pulls
    .pull(repository, (told) => progress.tell(told), leaving.signal)
    .then(
      () => {
        // Each file was compared with its checksum before it got its name.
        for (const status of ['verifying sha256 digest', 'writing manifest', 'success']) write({ status });
      },
      (error: unknown) => {
        const apiError = asApiError(error);
        if (apiError.status === 500 && !leaving.signal.aborted) logError(error);
        stream.write(`${errorBody(apiError)}\n`);
      },
    )
    .finally(() => {
      signal.removeEventListener('abort', leave);
      stream.close();
    });
  return new Response(stream.body, { headers: { ...STREAM_HEADERS, 'content-type': LINES.contentType } });
}

/** Lines about files: the first and the last of each, and one in a while between them. */
class ProgressLines {
  readonly #write: (fields: object) => void;
  #digest = '';
  #lastMs = 0;

  constructor(write: (fields: object) => void) {
    this.#write = write;
  }

  tell({ file: { hash, algorithm, size, done } }: PullProgress): void {
    const digest = `${algorithm}:${hash}`;
    const now = performance.now();
    if (digest === this.#digest && done < size && now - this.#lastMs < LINE_MS) return;
    this.#digest = digest;
    this.#lastMs = now;
    this.#write({ status: `pulling ${hash.slice(0, 12)}`, digest, total: size, completed: done });
  }
}
