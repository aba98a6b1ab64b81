// The addon's border to JavaScript.
#include <napi.h>

static Napi::Object Init(Napi::Env env, Napi::Object exports) {
  (void)env;
  return exports;
}

NODE_API_MODULE(skein, Init)
