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
