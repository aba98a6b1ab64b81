import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2';
import protobuf from 'protobufjs';
import { onTestFinished } from 'vitest';
import { INFERENCE_SCHEMA } from '../../../../../src/server/grpc/schema/inference-schema.js';

const requestType = protobuf
  .parse(INFERENCE_SCHEMA, { keepCase: true })
  .root.lookupType('inference.ModelInferRequest');

/** A message as it is sent: not compressed, its length, its bytes. */
export function framed(bytes: Uint8Array): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([prefix, bytes]);
}

/** A request for tensors as a message. */
export function inferMessage(fields: object): Buffer {
  return framed(requestType.encode(requestType.fromObject(fields)).finish());
}

/** A call on a connection of its own, of which nothing is read until the test does. */
export function rawStream(address: string, method: string): ClientHttp2Stream {
  const session = connect(`http://${address}`);
  session.on('error', () => {});
  onTestFinished(() => session.destroy());
  return openCall(session, method);
}

/** A call on a connection that is there. */
export function openCall(session: ClientHttp2Session, method: string): ClientHttp2Stream {
  const stream = session.request({
    ':method': 'POST',
    ':path': `/inference.GRPCInferenceService/${method}`,
    'content-type': 'application/grpc',
    te: 'trailers',
  });
  stream.on('error', () => {});
  return stream;
}
