import type { Guide } from '../../../callbacks/guide.js';
import { NAMED_PARAMETERS } from '../../../callbacks/request/parameters.js';
import { type ChatAsk, type ChatPlan, plannedFields } from '../../generation/chat-plan.js';
import { guideOf } from '../../generation/guided.js';
import { isHarmonyTemplate } from '../../generation/harmony/tokens.js';
import { reasoningStyle } from '../../generation/reasoning/reasoning-style.js';
import type { SamplingDefaults } from '../../generation/sampling-defaults.js';
import type { TextRequest } from '../../generation/text-generation.js';
import type { TextModel } from '../../generation/text-model.js';
import { mentions } from '../../generation/tools/detect-format.js';
import type { ServedGenerator } from '../../serving/served-model.js';
import { ChoiceRun, ONE_ANSWER } from '../answering/choice-run.js';
import { respondWithStream } from '../answering/respond.js';
import type { AnsweringServices } from '../answering/services.js';
import { chatMaxTokens, topLogProbs } from '../answering/text-request.js';
import type { Exchange } from '../web/exchange.js';
import { fieldsOf } from '../web/field-words.js';
import { inOtherWords } from '../web/other-words.js';
import type { LiveRequest } from '../web/request-registry.js';
import { warnOfAll } from '../web/warnings.js';
import { type AnswerOptions, answerWithoutText, OllamaAnswer } from './answer.js';
import { asGenerator, keepAliveOf, letGo, withModel } from './borrow.js';
import { notCapable } from './errors.js';
import { parametersOf } from './parameter-options.js';
import type { ChatBody, OllamaOptions } from './schemas.js';
import type { OllamaServices } from './services.js';
import { Timings } from './timings.js';

/** This API's names for fields of programs. */
const OLLAMA_FIELDS = fieldsOf('chat', [
  ['response_format', 'format'],
  ['reasoning_effort', 'think'],
  ['chat_template_kwargs', 'think'],
  ['max_completion_tokens', 'options.num_predict'],
  ['stop', 'options.stop'],
  ...NAMED_PARAMETERS.flatMap(({ field, ollama }): [string, string][] =>
    ollama === null ? [] : [[field, `options.${ollama}`]],
  ),
]);

/** Fields that chats and texts share. */
type Asked = Pick<ChatBody, 'model' | 'keep_alive' | 'options' | 'stream' | 'logprobs' | 'top_logprobs'>;

/** What a route asks of a model. */
export interface TextAsk {
  /** True where there is nothing to answer: the model is only loaded, or let go. */
  isEmpty: boolean;
  place: AnswerOptions['place'];
  /** What the model has to be able to do, for errors. */
  what: string;
  /** The end of the answer has the tokens of prompt and answer. */
  withContext: boolean;
  plan(model: ServedGenerator): Promise<ChatPlan>;
}

/** Answers a request with the model that it names, which is loaded for it. @throws ApiError; ModelLoadError */
export async function answerText(
  context: OllamaServices,
  request: Asked,
  { isEmpty, place, what, withContext, plan }: TextAsk,
  exchange: Exchange,
): Promise<Response> {
  const timings = new Timings();
  const { model: asked, keep_alive: keepAlive } = request;
  if (isEmpty && keepAliveOf(keepAlive) === 0) {
    await letGo(context, asked);
    return answerWithoutText(asked, place, 'unload');
  }
  return withModel(context, asked, { keepAlive, signal: exchange.signal }, async (found) => {
    const model = asGenerator(found, asked, what);
    timings.noteLoaded();
    if (isEmpty) return answerWithoutText(asked, place, 'load');
    const { registry, caller, requestId } = exchange.terms;
    return inOtherWords(OLLAMA_FIELDS, () =>
      registry.accept(caller, requestId, async (live) => {
        const planned = { model, plan: await plan(model), timings, place, withContext };
        warnOfAll(planned.plan.warnings, exchange.warn);
        return generateAnswer(context, request, planned, exchange, live);
      }),
    );
  });
}

interface Planned {
  model: ServedGenerator;
  plan: ChatPlan;
  timings: Timings;
  place: AnswerOptions['place'];
  withContext: boolean;
}

/** Generates an answer to a plan, whole or line by line. */
async function generateAnswer(
  context: AnsweringServices,
  request: Asked,
  { model, plan, timings, place, withContext }: Planned,
  exchange: Exchange,
  live: LiveRequest,
): Promise<Response> {
  const top = topLogProbs(model, 'top_logprobs', request.top_logprobs ?? 0);
  const choice = {
    ...samplingOf(request.options, model.sampling),
    ...plannedFields(plan),
    promptParam: place === 'message' ? 'messages' : 'prompt',
    maxTokens: maxTokensOf(model, request.options ?? { num_predict: undefined }, plan.promptTokens.length),
    logProbs: request.logprobs ? top : undefined,
    guideParam: 'format',
  };
  timings.noteSubmitted();
  const run = await ChoiceRun.start(model, [choice], ONE_ANSWER, context.observe, exchange.terms, live);
  const answer = new OllamaAnswer({
    model,
    asked: request.model,
    plan,
    run,
    timings,
    place,
    logProbs: request.logprobs ?? false,
    withContext,
  });
  if (request.stream === false) return answer.whole(exchange.signal);
  return respondWithStream(run, answer.lines(), context.eventStream, exchange);
}

/** Guide of `format`; undefined: any text. @throws InvalidRequestError */
export function guideOfFormat(format: ChatBody['format'], model: TextModel): Promise<Guide> | undefined {
  if (format === undefined || format === '') return undefined;
  return guideOf({ json: format === 'json' ? true : format }, 'response_format', model.codec);
}

/** What `think` says to a chat template. @throws ApiError where the model does not reason */
export function reasoningOf(
  think: ChatBody['think'],
  model: ServedGenerator,
  asked: string,
): Pick<ChatAsk, 'reasoningEffort' | 'variables'> {
  if (think === undefined) return {};
  const source = model.codec.templateSource ?? null;
  // As in Ollama, where this model's effort is low, medium or high and nothing else has a meaning.
  if (isHarmonyTemplate(source)) return typeof think === 'string' ? { reasoningEffort: think } : {};
  if (think === false) return { reasoningEffort: 'none' };
  const knows = (name: string) => source !== null && mentions(source, name);
  if (typeof think === 'string' && knows('reasoning_effort')) return { reasoningEffort: think };
  const style = reasoningStyle(source, model.reasoningParser ?? 'auto');
  if (style === 'none' && !knows('reasoning_effort')) throw notCapable(asked, 'thinking');
  return knows('enable_thinking') ? { variables: { enable_thinking: true } } : {};
}

/** The part of a request that Ollama's options say. What the model recommends goes before Ollama's own values. */
function samplingOf(
  options: OllamaOptions = {} as OllamaOptions,
  recommended: SamplingDefaults = {},
): Partial<TextRequest> {
  return { ...parametersOf(options, recommended), stop: options.stop };
}

/**
 * Most tokens of an answer: an answer that the context cannot hold ends there, where OpenAI's routes refuse the request.
 */
function maxTokensOf(
  model: ServedGenerator,
  { num_predict: asked = -1 }: Pick<OllamaOptions, 'num_predict'>,
  promptTokens: number,
): number {
  if (asked <= 0) return chatMaxTokens(model, undefined, promptTokens);
  return Math.max(1, Math.min(asked, model.maxSeqLen - promptTokens));
}
