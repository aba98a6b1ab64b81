import { infillPrompt } from '../../generation/infill.js';
import { MAX_UNITS_PER_TOKEN } from '../../generation/text-length.js';
import type { ServedGenerator } from '../../serving/served-model.js';
import { ChoiceRun } from '../answering/choice-run.js';
import { findGenerator } from '../answering/find-model.js';
import { respondWithStream } from '../answering/respond.js';
import type { AnsweringServices } from '../answering/services.js';
import { encodedFields, textRequest } from '../answering/text-request.js';
import { ApiError } from '../web/errors.js';
import type { Exchange } from '../web/exchange.js';
import { fieldsOf } from '../web/field-words.js';
import { inOtherWords } from '../web/other-words.js';
import type { LiveRequest } from '../web/request-registry.js';
import { InfillAnswer } from './infill-answer.js';
import { type CompletionRequest, completionRequestSchema } from './schemas/completions.js';
import type { InfillRequest } from './schemas/infill.js';

const INFILL_FIELDS = fieldsOf('completions', [['max_tokens', 'n_predict']]);

/** A request whose fields are all left out: those of completions that this route does not have. */
const NOTHING_ASKED = completionRequestSchema.parse({ prompt: '' });

/** Answers POST /infill, whose body its schema has validated. */
export async function infill(
  context: AnsweringServices,
  request: InfillRequest,
  exchange: Exchange,
): Promise<Response> {
  const { registry, caller, requestId } = exchange.terms;
  return inOtherWords(INFILL_FIELDS, () =>
    registry.accept(caller, requestId, (live) => answerInfill(context, request, exchange, live)),
  );
}

async function answerInfill(
  context: AnsweringServices,
  request: InfillRequest,
  exchange: Exchange,
  live: LiveRequest,
): Promise<Response> {
  const model = findGenerator(context, request.model);
  const maxTokens = maxTokensOf(model, request);
  const { tokens, isCut } = await promptOf(model, request, maxTokens);
  const common: CompletionRequest = { ...NOTHING_ASKED, ...request, prompt: [] };
  const asked = textRequest(common, {
    promptTokens: tokens,
    promptParam: 'input_prefix',
    maxTokens,
    encoded: await encodedFields(common, model),
  });
  const run = await ChoiceRun.start(
    model,
    [asked],
    { n: 1, bestOf: 1 },
    context.observe,
    exchange.terms,
    live,
  );
  const answer = new InfillAnswer({ model, request, tokens, maxTokens, isCut, run });
  if (request.stream) return respondWithStream(run, answer.frameWriter(), context.eventStream, exchange);
  return answer.whole(exchange.signal);
}

function maxTokensOf(
  { defaultMaxTokens, maxSeqLen }: ServedGenerator,
  { n_predict: asked = -1 }: InfillRequest,
) {
  // A quarter of the context is left for the prompt at least, where the client does not say.
  if (asked < 0) return Math.max(1, Math.min(defaultMaxTokens, Math.floor(maxSeqLen / 4)));
  if (asked < maxSeqLen) return asked;
  throw new ApiError(
    400,
    `'n_predict' is ${asked}, but the context has ${maxSeqLen} tokens, prompt included.`,
    {
      param: 'n_predict',
      code: 'invalid_value',
    },
  );
}

async function promptOf(
  { codec, id, maxInputLen, maxSeqLen }: ServedGenerator,
  request: InfillRequest,
  maxTokens: number,
): Promise<{ tokens: number[]; isCut: boolean }> {
  const { input_prefix: prefix, input_suffix: suffix, prompt = '', input_extra: files = [] } = request;
  const extra = files.map(({ filename = 'tmp', text }) => ({ filename, text }));
  const room = Math.min(maxInputLen, maxSeqLen - maxTokens);
  const unitsPerToken = codec.unitsPerToken ?? MAX_UNITS_PER_TOKEN;
  const found = await infillPrompt(codec, { prefix, suffix, prompt, extra }, { room, unitsPerToken });
  if (found !== null) return found;
  throw new ApiError(
    400,
    `Infill is not supported by the model '${id}': its vocabulary has no tokens for text to be filled in between.`,
    { param: 'model', code: 'model_not_supported' },
  );
}
