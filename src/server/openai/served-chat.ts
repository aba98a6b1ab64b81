import type { ChatMessage } from '../../../models/chat-template.js';
import { type ChatAsk, planChat } from '../../generation/chat-plan.js';
import type { FunctionTool } from '../../generation/tools/types.js';
import type { ServedGenerator } from '../../serving/served-model.js';
import { askedBudget } from '../answering/asked-budget.js';
import { type AskedServer, isAllowed, isMcp, needsApproval } from '../answering/asked-servers.js';
import { guideOfRequest } from '../answering/guides.js';
import { plannedRun } from '../answering/planned-run.js';
import { collect, type FrameWriter, respondWithStream } from '../answering/respond.js';
import type { AnsweringServices } from '../answering/services.js';
import { type EnginePass, SeveralPasses } from '../answering/several-passes.js';
import { chatMaxTokens, choiceCounts } from '../answering/text-request.js';
import { timeLimitOf, withTimeLeft } from '../answering/time-left.js';
import {
  choiceOfPass,
  type RoundsAnswer,
  type RoundsEnd,
  type ServedCall,
  ToolRounds,
  toolLoop,
} from '../answering/tool-rounds.js';
import type { CallOutcome, ServedTool } from '../mcp/tool-server.js';
import { jsonAnswer } from '../web/bodies/json-answer.js';
import { ApiError } from '../web/errors.js';
import type { Exchange } from '../web/exchange.js';
import type { LiveRequest } from '../web/request-registry.js';
import { warnOfAll } from '../web/warnings.js';
import { chatAsk, chatLimit } from './chat-ask.js';
import { Envelope } from './envelope.js';
import type { ChatRequest } from './schemas/chat.js';
import { type ChatServedCall, ServedChatAnswer } from './served-chat-answer.js';

/** A chat with MCP servers that is asked for. */
interface ServedChat {
  context: AnsweringServices;
  model: ServedGenerator;
  request: ChatRequest;
  servers: readonly AskedServer[];
}

/** Fields that say something of one pass of the engine, or of several answers. */
const OF_ONE_PASS = [
  'logprobs',
  'prompt_logprobs',
  'return_token_ids',
  'echo',
  'continue_final_message',
  'truncate_prompt_tokens',
  'return_progress',
  'timings_per_token',
] as const;

/** Answers a chat whose calls of tools of MCP servers run here. @throws ApiError */
export async function answerServedChat(
  asked: ServedChat,
  exchange: Exchange,
  live: LiveRequest,
): Promise<Response> {
  const { context, model, request, servers } = asked;
  checkServed(request);
  // The request ends with its last pass.
  const pass = { ...live, release: () => {} };
  const rounds = new ToolRounds({
    ...{ servers, live: pass },
    timeLimitMs: timeLimitOf(request, exchange.terms),
    callTimeoutMs: context.toolServers!.callTimeoutMs,
    maxCalls: undefined,
    maxResult: model.maxSeqLen,
  });
  const passes = new ChatPasses(asked, rounds, exchange, pass);
  const { answer } = passes;
  const onOver = () => {
    rounds.close();
    live.release();
  };
  const run: ServedRun = new ServedRun(
    toolLoop(rounds, passes, () => run.tell()),
    () => rounds.abort(),
    onOver,
    live,
  );
  const envelope = new Envelope({
    ...{ model, run, idPrefix: 'chatcmpl' },
    get promptTokens() {
      return run.promptTokens;
    },
    get imageTokens() {
      return run.imageTokens;
    },
    reasoningTokens: () => answer.reasoningTokens,
  });
  if (request.stream) {
    const writer = passes.frameWriter(envelope);
    return respondWithStream(run, writer, context.eventStream, exchange);
  }
  await collect(run, exchange.signal, (_, piece) => answer.piece(piece));
  const { finish: finish_reason, stop: stop_reason } = answer.finish;
  const choice = { index: 0, message: answer.message(), logprobs: null, finish_reason, stop_reason };
  return jsonAnswer({ ...envelope.fields('chat.completion'), choices: [choice], usage: envelope.usage() });
}

/** Passes with one answer, which can be found by its id. */
class ServedRun extends SeveralPasses {
  readonly numChoices = 1;
  readonly #live: LiveRequest;

  constructor(
    ...[source, onAbort, onOver, live]: [...ConstructorParameters<typeof SeveralPasses>, LiveRequest]
  ) {
    super(source, onAbort, onOver);
    this.#live = live;
  }

  addId(id: string): void {
    this.#live.addId(id);
  }
}

/** The passes of a chat, each with all that was said and called before. */
class ChatPasses implements RoundsAnswer<ChatServedCall> {
  readonly answer: ServedChatAnswer;
  readonly #asked: ServedChat;
  readonly #rounds: ToolRounds;
  readonly #exchange: Exchange;
  readonly #live: LiveRequest;
  readonly #sinceMs = performance.now();
  readonly #tools = new Map<string, Pick<ServedCall, 'server_label' | 'name'>>();
  readonly #runs: EnginePass[] = [];
  /** What was said and called so far. */
  readonly #said: ChatMessage[] = [];
  #ask: Awaited<ReturnType<typeof chatAsk>> | null = null;
  #deltas: string[] = [];

  constructor(asked: ServedChat, rounds: ToolRounds, exchange: Exchange, live: LiveRequest) {
    this.#asked = asked;
    this.#rounds = rounds;
    this.#exchange = exchange;
    this.#live = live;
    this.answer = new ServedChatAnswer({
      model: asked.model,
      find: (name) => this.#tools.get(name) ?? null,
      givesReasoning: asked.request.include_reasoning ?? true,
      onDelta: (delta) => this.#deltas.push(delta),
    });
  }

  /** Lists the tools of all servers. @throws ApiError 424, 400 */
  async *begin(): AsyncGenerator<EnginePass, boolean> {
    const { context, model, request, servers } = this.#asked;
    const rounds = this.#rounds;
    const functions: FunctionTool[] = [];
    for (const server of servers) {
      const list = () => rounds.session(server).list(rounds.signal);
      const { tools, warnings } = await rounds.whileLive(list);
      warnOfAll(warnings, this.#exchange.warn);
      for (const tool of tools.filter((one) => isAllowed(server.tool, one)))
        functions.push(this.#functionOf(tool, server));
    }
    const own = (request.tools ?? []).filter((tool) => !isMcp(tool));
    const ran = functions.map((one) => ({
      type: 'function' as const,
      function: { ...one, strict: undefined },
    }));
    const all = { ...request, tools: [...own, ...ran] } as ChatRequest;
    this.#ask = await chatAsk(context, model, all, this.#exchange);
    return true;
  }

  #functionOf(tool: ServedTool, { label, tool: asked, place }: AskedServer): FunctionTool {
    if (needsApproval(asked, tool)) {
      const param = `${place}.require_approval`;
      const message = `'${param}' would have the client approve calls of '${tool.name}', which a chat has no form for: say 'never', name other tools in 'allowed_tools', or use /v1/responses.`;
      throw new ApiError(400, message, { param });
    }
    const name = `${label}__${tool.name}`;
    this.#tools.set(name, { server_label: label, name: tool.name });
    return { name, description: tool.description, parameters: tool.inputSchema };
  }

  async pass(mayCall: boolean, isFirst: boolean): Promise<EnginePass | null> {
    const { context, model, request } = this.#asked;
    const limit = chatLimit(request);
    const used = this.#runs.reduce((sum, { run }) => sum + run.completionTokens, 0);
    if (limit !== undefined && used >= limit) {
      this.answer.endWith('length', null);
      return null;
    }
    if (!isFirst) this.#said.push(...this.answer.said());
    const plan = await planChat(model, {
      ...this.#askFor(mayCall, isFirst),
      guide: await guideOfRequest(request, model.codec, this.#exchange.warn),
      ignoreEos: request.ignore_eos,
    });
    warnOfAll(plan.warnings, this.#exchange.warn);
    const maxTokens = chatMaxTokens(
      model,
      limit === undefined ? undefined : limit - used,
      plan.promptTokens.length,
    );
    const limited = withTimeLeft(request, this.#exchange.terms, this.#sinceMs);
    const run = await plannedRun(
      context,
      model,
      { request: limited.request, plan, promptParam: 'messages', maxTokens, budget: askedBudget(request) },
      limited.terms,
      this.#live,
    );
    const begun = { plan, run };
    this.#runs.push(begun);
    this.answer.beginPass(plan);
    return begun;
  }

  #askFor(mayCall: boolean, isFirst: boolean): ChatAsk {
    const ask = this.#ask!;
    const messages = [...ask.messages, ...this.#said];
    return { ...ask, messages, ...choiceOfPass(ask, mayCall, isFirst) };
  }

  takeCalls(): readonly ChatServedCall[] {
    return this.answer.takeCalls();
  }

  outcome(call: ChatServedCall, outcome: CallOutcome): void {
    this.#exchange.terms.memory.addTaken(8 * outcome.text.length);
    this.answer.outcome(call, outcome);
  }

  goesOn(): boolean {
    const { answer } = this;
    if (answer.isOver) return false;
    if (!answer.waitsForClient) return true;
    answer.endWith('stop', null);
    return false;
  }

  end(why: RoundsEnd): void {
    this.answer.endWith('length', why === 'timeout' ? 'time_limit' : why);
  }

  /** Writes the answer as chunks: each change of the message, and at the end why it has ended. */
  frameWriter(envelope: Envelope): FrameWriter {
    const { request } = this.#asked;
    const { chunk, end } = envelope.frames('chat.completion.chunk', request.stream_options);
    let hasBegun = false;
    const choice = (delta: string, rest: string) => `{"index":0,"delta":${delta},"logprobs":null,${rest}}`;
    const told = () => {
      const deltas = hasBegun ? [] : ['{"role":"assistant","content":""}'];
      hasBegun = true;
      deltas.push(...this.#deltas);
      this.#deltas = [];
      return deltas.map((delta) => chunk(choice(delta, '"finish_reason":null'))).join('');
    };
    return {
      piece: (_, piece) => {
        this.answer.piece(piece);
        return this.#deltas.length === 0 ? '' : told();
      },
      end: () => {
        const { finish, stop } = this.answer.finish;
        const last = chunk(choice('{}', `"finish_reason":"${finish}","stop_reason":${JSON.stringify(stop)}`));
        return told() + last + end();
      },
    };
  }
}

/** @throws ApiError for what a chat of several passes cannot have */
function checkServed(request: ChatRequest): void {
  const { n, bestOf } = choiceCounts(request);
  const several = n > 1 || bestOf > 1 ? 'n' : undefined;
  const fields = request as Partial<Record<string, unknown>>;
  const isAsked = (name: string) => fields[name] !== undefined && fields[name] !== false;
  const param = several ?? [...OF_ONE_PASS, 'functions'].find(isAsked);
  if (param === undefined) return;
  const message = `'${param}' is refused with tools of the type mcp, whose answer has several passes of the model.`;
  throw new ApiError(400, message, { param, code: 'unsupported_parameter' });
}
