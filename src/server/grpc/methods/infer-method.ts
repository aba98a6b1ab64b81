import type { AnswerTally } from '../../../../callbacks/infer/answer-tally.js';
import { InferError } from '../../../../callbacks/infer/infer-error.js';
import type { InferResponse, InferTensor } from '../../../../callbacks/infer/infer-types.js';
import type { TraceSpan } from '../../../../callbacks/infer/trace-span.js';
import type { InferModel } from '../../../serving/infer-model.js';
import { askOnce } from '../../../serving/protocol/ask-once.js';
import { chosenOutputs, wishedOutput } from '../../../serving/protocol/chosen-outputs.js';
import { refuseAdapter, refuseEngine } from '../../../serving/protocol/known-fields.js';
import type { RegionAccess } from '../../../serving/protocol/region-access.js';
import { bytesOf } from '../../inferring/infer-stream.js';
import { inferTerms } from '../../inferring/infer-terms.js';
import { regionAccess } from '../../inferring/platform.js';
import type { Tracing } from '../../tracing/tracing.js';
import type { Caller } from '../../web/access/api-keys.js';
import { ENGINE_HEADER, engineOf } from '../../web/exchange.js';
import { REQUEST_BYTES } from '../../web/memory/memory-estimates.js';
import { type AnswerHead, inferResponseParts } from '../infer/infer-answer.js';
import { type InferMessage, readInferMessage } from '../infer/infer-message.js';
import { type ReadRequest, readRequest } from '../infer/read-request.js';
import type { MethodTypes } from '../schema/message-types.js';
import { statusOf } from '../status-of.js';
import type { CallMessage, GrpcCall } from '../wire/grpc-call.js';
import { headerText } from '../wire/metadata.js';
import { type CallStatus, OK, STATUS_CODES } from '../wire/status.js';
import type { InferenceServices } from './inference-methods.js';
import { type Method, method, versionOf } from './method.js';

/** ModelInfer: one request, one answer. */
export function inferMethod(types: MethodTypes, services: InferenceServices): Method {
  return {
    ...method(types, { isWork: true }),
    answer: async ({ call, caller, tally }) => {
      const startMs = performance.now();
      const message = await call.only();
      const asked = new AskedInfer(message, { call, caller, tally, startMs }, services);
      try {
        const model = asked.find();
        refuseDecoupled(model);
        const read = await asked.read(model, call.signal);
        const response = await askOnce(model, read.request);
        const tensors = await asked.outputs(model, read, response);
        message.memory.addAnswer(bytesOf(tensors));
        await call.reply(inferResponseParts(headOf(model, read, response), tensors));
        // What is on its way out may still be the model's memory, which is used again once this is called.
        if (call.isClosed) response.release?.();
        else call.onClose(() => response.release?.());
      } catch (error) {
        asked.noteFailure(error);
        throw error;
      } finally {
        asked.release();
        if (call.isClosed) message.memory.release();
        else call.onClose(() => message.memory.release());
      }
    },
  };
}

function refuseDecoupled({ config: { model_transaction_policy: policy } }: InferModel): void {
  if (!policy.decoupled) return;
  throw new InferError(
    "ModelInfer RPC doesn't support models with decoupled transaction policy",
    'unsupported',
  );
}

/** Whose request it is, and since when. */
export interface Asking {
  call: Pick<GrpcCall, 'path' | 'requestId' | 'headers'>;
  caller: Caller;
  tally: AnswerTally;
  startMs: number;
}

/** A request for tensors on its way from its message to its answer. */
export class AskedInfer {
  readonly message: InferMessage;
  readonly #sent: CallMessage;
  readonly #caller: Caller;
  readonly #requestId: string;
  readonly #tally: AnswerTally;
  /** Fingerprint of the engine that is to answer; undefined: any of the model. */
  readonly #engine: string | undefined;
  readonly #regions: RegionAccess;
  readonly #services: InferenceServices;
  /** Undefined: it is not traced. */
  readonly #span: TraceSpan | undefined;
  #status: CallStatus = OK;

  /** @throws InferError, GrpcError */
  constructor(sent: CallMessage, { call, caller, tally, startMs }: Asking, services: InferenceServices) {
    this.#sent = sent;
    this.#caller = caller;
    this.#requestId = call.requestId;
    this.#tally = tally;
    this.#engine = engineOf(headerText(call.headers[ENGINE_HEADER]));
    this.#services = services;
    this.#regions = regionAccess(services.platform, caller, services.apiKeys, services.maxBytes);
    try {
      this.message = readInferMessage(sent.bytes);
    } catch (error) {
      sent.memory.release();
      throw error;
    }
    const { tracing } = services;
    if (tracing === null) return;
    const { path, requestId, headers } = call;
    const traceparent = headerText(headers.traceparent);
    const tracestate = headerText(headers.tracestate);
    const { model } = this.message;
    this.#span =
      beginGrpcSpan(tracing, { path, requestId, startMs, model, traceparent, tracestate }) ?? undefined;
  }

  /** The model that it asks. @throws InferError */
  find(): InferModel {
    const { model, version } = this.message;
    return this.#services.platform.repository.find(model, versionOf(version));
  }

  /** @throws InferError, GrpcError, ApiError */
  async read(model: InferModel, signal: AbortSignal): Promise<ReadRequest> {
    const { bytes, memory } = this.#sent;
    const hold = (more: number) => memory.holdBody(REQUEST_BYTES + bytes.length + more);
    const read = await readRequest(this.message, {
      regions: this.#regions,
      signal,
      owner: this.#caller.name,
      trace: this.#span,
      hold,
    });
    refuseAdapter(model, read.request);
    refuseEngine(model, this.#engine);
    const { timeLimitMs, quotas } = this.#services;
    const terms = inferTerms({
      caller: this.#caller,
      requestId: this.#requestId,
      timeLimitMs,
      memory,
      tally: this.#tally,
      engine: this.#engine,
      admit: quotas?.admitOf(this.#caller),
    });
    return { ...read, request: { ...read.request, terms } };
  }

  /** The outputs that were asked for, as they were wished. @throws InferError */
  async outputs(
    model: InferModel,
    { request: { signal }, wishes }: ReadRequest,
    { outputs }: InferResponse,
  ): Promise<InferTensor[]> {
    const tensors: InferTensor[] = [];
    for (const [output, wish] of chosenOutputs(outputs, wishes)) {
      tensors.push(await wishedOutput(model, output, wish, signal));
    }
    return tensors;
  }

  /** It failed: its span records that. */
  noteFailure(error: unknown): void {
    this.#status = statusOf(error);
  }

  /** It is over: what it has of shared memory may go. */
  release(): void {
    this.#regions.release();
    if (this.#span === undefined) return;
    noteGrpcStatus(this.#span, this.#status);
    this.#span.end();
  }
}

export function headOf(
  { config, version }: InferModel,
  { request: { id } }: ReadRequest,
  { parameters = {} }: InferResponse,
): AnswerHead {
  return { model: config.name, version, id, parameters };
}

/** A request for tensors by gRPC: a call, or one of the requests of a stream. */
interface TracedCall {
  /** As it is called: /inference.GRPCInferenceService/ModelInfer */
  path: string;
  requestId: string;
  startMs: number;
  model: string;
  /** Those of W3C Trace Context. */
  traceparent: string | undefined;
  tracestate: string | undefined;
}

/** The span of a request that is traced; null: it is not. Source of the attributes' names: OpenTelemetry's semantic conventions for gRPC. */
function beginGrpcSpan(
  tracing: Tracing,
  { path, requestId, startMs, model, traceparent, tracestate }: TracedCall,
): TraceSpan | null {
  const [service = '', method = ''] = path.slice(1).split('/');
  return tracing.begin({
    name: `${service}/${method}`,
    startMs,
    model,
    traceparent,
    tracestate,
    attributes: {
      'rpc.system': 'grpc',
      'rpc.service': service,
      'rpc.method': method,
      'skein.request_id': requestId,
    },
  });
}

/** Says how a request ended. */
function noteGrpcStatus(span: TraceSpan, { name, message }: CallStatus): void {
  span.set({ 'rpc.grpc.status_code': STATUS_CODES[name] });
  if (name !== 'OK') span.fail(`${name}: ${message}`);
}
