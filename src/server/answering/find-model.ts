import type { EncoderHead } from '../../../models/encoder-config.js';
import { withAdapters } from '../../serving/adapters/served-adapters.js';
import type { ServedEncoder, ServedGenerator, ServedModel } from '../../serving/served-model.js';
import { ApiError } from '../web/errors.js';
import type { AnsweringServices } from './services.js';

/**
 * The model of a name; without a name, the first model that is available.
 * @throws ApiError 404 that lists the models; 503 for one that is expected, which is then counted as wanted
 */
export function findModel(
  { models }: Pick<AnsweringServices, 'models'>,
  id: string | undefined,
): ServedModel {
  const model = id === undefined ? firstOf(models.list()) : models.find(id);
  if (model !== undefined) return model;
  if (id !== undefined && models.expected?.refuse(id) === true) throw notYetThere(id);
  throw noSuchModel(id, idsOf(withAdapters(models.list())));
}

/** Seconds after which a client may ask again for a model that is about to be started. */
const START_RETRY_S = 10;

function notYetThere(id: string): ApiError {
  return new ApiError(503, `No worker has had the model '${id}' yet; try again later.`, {
    param: 'model',
    code: 'model_not_loaded',
    headers: { 'retry-after': String(START_RETRY_S) },
  });
}

/** The model of a request that names none. */
function firstOf<Model extends ServedModel>(models: readonly Model[]): Model | undefined {
  return models.find(({ state }) => !state.isAway) ?? models[0];
}

/** Error for a model that is not there, which lists those that are. @param id undefined: none was named @param none where there are none */
export function noSuchModel(
  id: string | undefined,
  names: readonly string[],
  none = 'no model now',
): ApiError {
  const message = id === undefined ? '' : `The model '${id}' does not exist. `;
  return new ApiError(404, `${message}This server serves ${listed(names) || none}.`, {
    param: 'model',
    code: 'model_not_found',
  });
}

/**
 * The model of a name that generates text; without a name, the first one that does.
 * @throws ApiError 404 as findModel, 400 for a model of another kind.
 */
export function findGenerator(
  { models }: Pick<AnsweringServices, 'models'>,
  id: string | undefined,
): ServedGenerator {
  const generators = models.list().filter((served) => served.kind === 'generator');
  const model = id === undefined ? firstOf(generators) : findModel({ models }, id);
  if (model?.kind === 'generator') return model;
  const asked =
    model === undefined
      ? 'No model of this server generates text'
      : `The model '${model.id}' generates no text`;
  const others = generators.length === 0 ? '' : `; ${listed(idsOf(generators))} would`;
  throw new ApiError(400, `${asked}${others}.`, { param: 'model', code: 'model_not_supported' });
}

const TASKS = {
  embedding: 'embeds',
  score: 'scores',
  classification: 'classifies',
  any: 'embeds, scores or classifies',
} as const;

/** Heads that do a task, in order of precedence: the cosine of two embeddings is a score, and a cross-encoder has a single label. */
const HEADS_OF: Readonly<Record<keyof typeof TASKS, readonly EncoderHead['kind'][]>> = {
  embedding: ['embedding'],
  score: ['score', 'embedding'],
  classification: ['classification', 'score'],
  any: ['embedding', 'classification', 'score'],
};

/**
 * The encoder of a name. Texts are scored by cross-encoders, and by models that embed; they are classified by classifiers and by
 * cross-encoders. Without a name, the first of the kind that is for it does it, if there is one.
 * @param isFirst whether a model of a head is taken before others where none is named
 * @throws ApiError 404 as findModel, 400 for a model of another kind.
 */
export function findEncoder(
  { models }: Pick<AnsweringServices, 'models'>,
  id: string | undefined,
  task: keyof typeof TASKS,
  isFirst: (head: EncoderHead) => boolean = () => true,
): ServedEncoder {
  const encoders = models.list().filter((served) => served.kind === 'encoder');
  const able = HEADS_OF[task].flatMap((kind) => encoders.filter(({ head }) => head.kind === kind));
  const model =
    id === undefined ? (able.find(({ head }) => isFirst(head)) ?? able[0]) : findModel({ models }, id);
  const found = able.find((served) => served === model);
  if (found !== undefined) return found;
  const asked =
    model === undefined
      ? `No model of this server ${TASKS[task]} texts`
      : `The model '${model.id}' ${TASKS[task]} no texts`;
  const others = able.length === 0 ? '' : `; ${listed(idsOf(able))} would`;
  throw new ApiError(400, `${asked}${others}.`, { param: 'model', code: 'model_not_supported' });
}

/** Most names in a sentence. */
const MAX_NAMES = 20;

const idsOf = (models: readonly ServedModel[]) => models.map(({ id }) => id);

/** Names as a sentence lists them; '': there are none. */
export function listed(names: readonly string[]): string {
  const told = names.slice(0, MAX_NAMES).map((name) => `'${name}'`);
  const more = names.length - told.length;
  return `${told.join(', ')}${more === 0 ? '' : ` and ${more} more`}`;
}

/** The chat template that a request brings; undefined: none. @throws ApiError where it may not */
export function templateOf(
  { trustsTemplates }: Pick<AnsweringServices, 'trustsTemplates'>,
  { chat_template: template }: { chat_template?: string | undefined },
): string | undefined {
  if (template === undefined || trustsTemplates) return template;
  throw new ApiError(
    400,
    "'chat_template' is refused: this server runs no templates of its clients; its option --trust-request-chat-template would let it.",
    { param: 'chat_template', code: 'unsupported_parameter' },
  );
}
