import * as grpc from '@grpc/grpc-js';
import protobuf from 'protobufjs';
import { INFERENCE_SCHEMA } from '../../src/server/grpc/schema/inference-schema.js';
import { HEALTH_SCHEMA } from '../../src/server/grpc/schema/message-types.js';

/** How a call has ended: its answer, or the code of gRPC by name and what it says. */
export type GrpcAnswer =
  | { answer: Record<string, unknown> }
  | { code: keyof typeof grpc.status; message: string };

const ANSWER_OPTIONS = {
  longs: String,
  enums: String,
  bytes: Buffer as unknown as BufferConstructor,
} as const;

/** Definitions of the services that a server of tensors has, made of its schemas, for the library of gRPC. */
function definitionOf(schema: string): grpc.ServiceDefinition {
  const { root, package: name } = protobuf.parse(schema, { keepCase: true });
  const space = root.lookup(name!) as protobuf.Namespace;
  const service = space.nestedArray.find((one) => one instanceof protobuf.Service)!;
  const methods = service.methodsArray.map((method) => {
    const { resolvedRequestType: asked, resolvedResponseType: answered } =
      method.resolve() as protobuf.Method;
    return {
      path: `/${name}.${service.name}/${method.name}`,
      requestStream: method.requestStream ?? false,
      responseStream: method.responseStream ?? false,
      // A buffer is sent as it is: what is no message at all can be asked, too.
      requestSerialize: (fields: object) =>
        Buffer.isBuffer(fields) ? fields : Buffer.from(asked!.encode(asked!.fromObject(fields)).finish()),
      requestDeserialize: (bytes: Buffer) => bytes,
      responseSerialize: (bytes: Buffer) => bytes,
      responseDeserialize: (bytes: Buffer) => answered!.toObject(answered!.decode(bytes), ANSWER_OPTIONS),
      name: method.name,
    };
  });
  return Object.fromEntries(methods.map((method) => [method.name, method]));
}

const DEFINITION: grpc.ServiceDefinition = {
  ...definitionOf(INFERENCE_SCHEMA),
  ...definitionOf(HEALTH_SCHEMA),
};

export interface GrpcClientOptions {
  credentials?: grpc.ChannelCredentials;
  channel?: grpc.ChannelOptions;
  /** Metadata of every call. */
  metadata?: Readonly<Record<string, string>>;
}

/** A client of the library of gRPC, for a server of the Open Inference Protocol. */
export class GrpcClient {
  readonly #client: grpc.Client;
  readonly #metadata: grpc.Metadata;

  /** @param address host:port */
  constructor(
    address: string,
    { credentials = grpc.credentials.createInsecure(), channel = {}, metadata = {} }: GrpcClientOptions = {},
  ) {
    const options = {
      'grpc.max_receive_message_length': -1,
      'grpc.max_send_message_length': -1,
      // Each client has a connection of its own.
      'grpc.use_local_subchannel_pool': 1,
      ...channel,
    };
    this.#client = new grpc.Client(address, credentials, options);
    this.#metadata = grpc.Metadata.fromHttp2Headers({});
    for (const [name, value] of Object.entries(metadata)) this.#metadata.set(name, value);
  }

  /** @param fields of the request, or any bytes */
  call(method: string, fields: object, options: grpc.CallOptions = {}): Promise<GrpcAnswer> {
    const { path, requestSerialize, responseDeserialize } = DEFINITION[method]!;
    return new Promise((resolve) => {
      this.#client.makeUnaryRequest(
        path,
        requestSerialize,
        responseDeserialize,
        fields,
        this.#metadata,
        options,
        (error, answer) => {
          if (error === null) resolve({ answer: answer as Record<string, unknown> });
          else resolve(failureOf(error));
        },
      );
    });
  }

  /** A stream of messages both ways. */
  stream(
    method: string,
    options: grpc.CallOptions = {},
  ): grpc.ClientDuplexStream<object, Record<string, unknown>> {
    const { path, requestSerialize, responseDeserialize } = DEFINITION[method]!;
    return this.#client.makeBidiStreamRequest(
      path,
      requestSerialize,
      responseDeserialize as (bytes: Buffer) => Record<string, unknown>,
      this.#metadata,
      options,
    );
  }

  /** Sends messages, ends the sending, and gathers what comes. */
  async exchange(
    method: string,
    messages: readonly object[],
  ): Promise<{ answers: Record<string, unknown>[]; code: keyof typeof grpc.status; message: string }> {
    const stream = this.stream(method);
    const answers: Record<string, unknown>[] = [];
    const ended = new Promise<grpc.StatusObject>((resolve) => stream.on('status', resolve));
    stream.on('data', (answer) => answers.push(answer));
    stream.on('error', () => {});
    for (const message of messages) stream.write(message);
    stream.end();
    const { code, details } = await ended;
    return { answers, code: grpc.status[code] as keyof typeof grpc.status, message: details };
  }

  close(): void {
    this.#client.close();
  }
}

function failureOf({ code, details }: grpc.ServiceError): GrpcAnswer {
  return { code: grpc.status[code] as keyof typeof grpc.status, message: details };
}
