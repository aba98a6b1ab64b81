// The same requests as ask-tensors.mjs makes over HTTP, over gRPC: grpcAsker({ url: 'grpc://HOST:PORT', model, clients, floats }) makes and asks them, with a
// connection for each client, as over HTTP.
import * as grpc from '@grpc/grpc-js';
import protobuf from 'protobufjs';

const PATH = '/inference.GRPCInferenceService/ModelInfer';
const { root } = protobuf.parse(
  `syntax = "proto3";
  message Parameter { oneof choice { bool bool_param = 1; int64 int64_param = 2; } }
  message Input { string name = 1; string datatype = 2; repeated int64 shape = 3; }
  message Request {
    string model_name = 1;
    map<string, Parameter> parameters = 4;
    repeated Input inputs = 5;
    repeated bytes raw_input_contents = 7;
  }`,
  { keepCase: true },
);
const Request = root.lookupType('Request');

const parameterOf = (value) =>
  typeof value === 'boolean' ? { bool_param: value } : { int64_param: Number(value) };

export function grpcAsker({ url, model, clients, floats }) {
  const raw = Buffer.from(new Float32Array(floats).fill(1.5).buffer);
  const options = { 'grpc.use_local_subchannel_pool': 1, 'grpc.max_receive_message_length': -1 };
  const address = url.replace(/^grpc:\/\//, '');
  const channels = Array.from(
    { length: clients },
    () => new grpc.Client(address, grpc.credentials.createInsecure(), options),
  );
  const asIs = (bytes) => bytes;
  return {
    bodyOf(parameters) {
      const given = Object.entries(parameters).map(([name, value]) => [name, parameterOf(value)]);
      const fields = {
        model_name: model,
        inputs: [{ name: 'INPUT0', datatype: 'FP32', shape: [1, floats] }],
        raw_input_contents: [raw],
        parameters: Object.fromEntries(given),
      };
      return Buffer.from(Request.encode(fields).finish());
    },
    ask(body, client) {
      return new Promise((resolve, reject) => {
        channels[client].makeUnaryRequest(PATH, asIs, asIs, body, (error) => {
          if (error === null) resolve();
          else reject(new Error(`${url} answered ${error.message}.`));
        });
      });
    },
  };
}
