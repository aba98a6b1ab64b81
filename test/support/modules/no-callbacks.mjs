// A callback module that lacks sendResponse.
export function getInferenceRequests() {
  return [];
}
