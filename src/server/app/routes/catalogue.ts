import * as z from 'zod';
import { HubError } from '../../../errors/user-errors.js';
import { parseRepository, pulledName, type Repository } from '../../../hub/repository.js';
import { about, component } from '../../../schemas/fields.js';
import type { Catalogue, CatalogueEntry } from '../../../serving/catalogue/catalogue-types.js';
import type { ModelCatalogue } from '../../../serving/catalogue/model-catalogue.js';
import { requireFolderAdmin } from '../../web/access/auth.js';
import { ApiError } from '../../web/errors.js';
import type { Exchange } from '../../web/exchange.js';
import { defineRoute, type ServerContext } from '../server-context.js';

const WHO = 'By admins where there are API keys, else from the machine of the server alone.';
/** Characters of a name: more than the hub allows. */
const MAX_NAME = 200;

export const catalogueRoute = defineRoute({
  method: 'get',
  path: '/catalogue',
  tags: ['Models'],
  summary: 'Lists the models that this machine has or could have, with the speed to expect',
  description:
    'Of servers that load models on demand. `tokens_per_second` is a bound for one sequence: the measured rate at which memory is read, divided by the bytes of weights that a token reads. Those who may download make the server ask the hub, once an hour; others see what is known.',
  responses: async () => (await import('../catalogue-answers.js')).catalogueResponses(),
  handle: async ({ exchange, isLocal }, context) => {
    const catalogue = catalogueOf(context);
    const refusal = refusalOf(exchange, context, isLocal);
    return Response.json(written(await catalogue.list(refusal === null), refusal));
  },
});

const body = component(
  'DownloadRequest',
  z.strictObject({
    repository: about(
      z.string().min(1).max(MAX_NAME),
      'The repository of the Hugging Face hub, ORG/NAME, or with the precision of a GGUF file ORG/NAME:QUANT.',
    ),
  }),
  'A model to download.',
);

export const downloadRoute = defineRoute({
  method: 'post',
  path: '/catalogue/downloads',
  tags: ['Models'],
  summary: 'Downloads a model of the hub into the folder of models, or goes on with that',
  description: `${WHO} The answer comes with the first bytes; the download goes on without the request, and \`GET /catalogue\` has its progress. Four are under way at most, and each has to fit on the disk besides the others.`,
  body,
  examples: { 'A small model': { repository: 'HuggingFaceTB/SmolLM2-135M-Instruct' } },
  responses: async () => (await import('../catalogue-answers.js')).downloadResponses(),
  handle: async ({ body, exchange, isLocal }, context) => {
    const catalogue = catalogueOf(context);
    requireFolderAdmin(exchange.terms.caller, context.apiKeys, isLocal);
    const repository = repositoryIn(body.repository);
    context.log.info(
      { key: exchange.terms.caller.name, model: pulledName(repository) },
      'download asked for',
    );
    await catalogue.download(repository).catch((error: unknown) => {
      throw asApiError(error);
    });
    return Response.json({ object: 'model_download', model: pulledName(repository) }, { status: 202 });
  },
});

export const cancelDownloadRoute = defineRoute({
  method: 'delete',
  path: '/catalogue/downloads/{model}',
  // Names of the hub hold a slash.
  pattern: '/catalogue/downloads/:model{.+}',
  tags: ['Models'],
  summary: 'Ends a download; what has come is kept',
  description: WHO,
  params: z.object({ model: about(z.string(), 'The name with which it was begun.') }),
  responses: async () => (await import('../catalogue-answers.js')).cancelResponses(),
  handle: ({ params: { model }, exchange, isLocal }, context) => {
    const catalogue = catalogueOf(context);
    requireFolderAdmin(exchange.terms.caller, context.apiKeys, isLocal);
    if (catalogue.cancel(model)) return Response.json({ object: 'model_download.cancelled', model });
    throw new ApiError(404, `No download of '${model}' is under way.`, { param: 'model', code: 'not_found' });
  },
});

/** @throws ApiError 404 where no models are loaded on demand */
function catalogueOf({ life }: ServerContext): ModelCatalogue {
  if (life?.catalogue !== undefined) return life.catalogue;
  throw new ApiError(
    404,
    'This server loads no models on demand: it was started without --models-dir, with its models named.',
    { code: 'no_models_dir' },
  );
}

/** Why the caller may not download; null: it may. */
function refusalOf({ terms }: Exchange, { apiKeys }: ServerContext, isLocal: boolean): string | null {
  try {
    requireFolderAdmin(terms.caller, apiKeys, isLocal);
    return null;
  } catch (error) {
    if (error instanceof ApiError) return error.message;
    throw error;
  }
}

/** @throws ApiError 400 for anything but a repository: no name can be a path */
function repositoryIn(text: string): Repository {
  const repository = parseRepository(text);
  if (repository !== null) return repository;
  throw new ApiError(
    400,
    `'repository' is '${text}', which names no repository of the Hugging Face hub; ORG/NAME or ORG/NAME:QUANT is expected.`,
    { param: 'repository', code: 'invalid_value' },
  );
}

/** The hub's faults by their statuses; those of the disk are the server's. */
function asApiError(error: unknown): unknown {
  if (!(error instanceof HubError)) return error;
  if (error.fault === 'refused')
    return new ApiError(404, error.message, { param: 'repository', code: 'model_not_found' });
  if (error.fault === 'unreachable') return new ApiError(503, error.message, { code: 'hub_unreachable' });
  return new ApiError(500, error.message, { param: 'repository', code: 'download_failed' });
}

function written({ entries, more, memoryBytes, bytesPerSecond, hub }: Catalogue, refusal: string | null) {
  return {
    object: 'list',
    data: entries.map(writtenEntry),
    more,
    memory_bytes: memoryBytes,
    read_bytes_per_second: bytesPerSecond === null ? null : Math.round(bytesPerSecond),
    hub,
    may_download: refusal === null,
    download_refusal: refusal,
  };
}

function writtenEntry(entry: CatalogueEntry) {
  const { name, state, bytes, doneBytes, bytesPerSecond, expectation, problem, contextTokens } = entry;
  const rate = expectation?.tokensPerSecond ?? null;
  return {
    id: name,
    object: 'catalogue_entry',
    state,
    bytes,
    done_bytes: doneBytes,
    bytes_per_second: bytesPerSecond === null ? null : Math.round(bytesPerSecond),
    fits: expectation?.fits ?? null,
    cached_tokens: expectation?.cachedTokens ?? null,
    context_tokens: contextTokens,
    tokens_per_second: rate === null ? null : Number(rate.toPrecision(3)),
    problem,
  };
}
