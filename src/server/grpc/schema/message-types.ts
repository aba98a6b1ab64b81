import { createRequire } from 'node:module';
import type protobuf from 'protobufjs';
import { GrpcError } from '../wire/status.js';
import { INFERENCE_SCHEMA } from './inference-schema.js';

/** The health service that balancers and orchestrators ask. Source: gRPC's "Health Checking Protocol". */
export const HEALTH_SCHEMA = `
syntax = "proto3";
package grpc.health.v1;
service Health {
  rpc Check (HealthCheckRequest) returns (HealthCheckResponse);
  rpc Watch (HealthCheckRequest) returns (stream HealthCheckResponse);
}
message HealthCheckRequest { string service = 1; }
message HealthCheckResponse {
  enum ServingStatus { UNKNOWN = 0; SERVING = 1; NOT_SERVING = 2; SERVICE_UNKNOWN = 3; }
  ServingStatus status = 1;
}
`;

/** Fields of a message by their names in the schema; numbers of 64 bits are texts. */
export type Fields = Readonly<Record<string, unknown>>;

/** A method of a service, with the means to read and write its messages. */
export interface MethodTypes {
  /** As it is called: /inference.GRPCInferenceService/ModelInfer */
  path: string;
  name: string;
  isStream: boolean;
  /** Reads a request. @throws GrpcError for bytes that are no request */
  read(bytes: Uint8Array): Fields;
  /** Bytes of an answer. @param fields those of the schema that are set; others are left out */
  write(fields: object): Uint8Array;
}

const READ_OPTIONS: protobuf.IConversionOptions = {
  longs: String,
  defaults: true,
  oneofs: true,
  objects: true,
};

/** All methods that this server answers. */
export function methodTypes(): readonly MethodTypes[] {
  const { parse } = createRequire(import.meta.url)('protobufjs') as typeof protobuf;
  return [INFERENCE_SCHEMA, HEALTH_SCHEMA].flatMap((schema) => {
    const { root, package: name } = parse(schema, { keepCase: true });
    const space = root.lookup(name!) as protobuf.Namespace;
    const services = space.nestedArray.filter((one) => 'methods' in one) as protobuf.Service[];
    return services.flatMap((service) =>
      service.methodsArray.map((method) =>
        typesOf(`${name}.${service.name}`, method.resolve() as protobuf.Method),
      ),
    );
  });
}

function typesOf(service: string, method: protobuf.Method): MethodTypes {
  const { name, resolvedRequestType: asked, resolvedResponseType: answered } = method;
  return {
    name,
    path: `/${service}/${name}`,
    isStream: method.responseStream === true,
    read: (bytes) => {
      try {
        return asked!.toObject(asked!.decode(bytes), READ_OPTIONS);
      } catch {
        throw new GrpcError('INTERNAL', `Unable to parse request: it is no ${asked!.name}`);
      }
    },
    write: (fields) => answered!.encode(answered!.fromObject(fields)).finish(),
  };
}
