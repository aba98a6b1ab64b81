// The addon's border to JavaScript.
#include <napi.h>

#include "convert/register-convert.h"
#include "executor/executor_object.h"
#include "kernels/test_hooks.h"

static Napi::Object Init(Napi::Env env, Napi::Object exports) {
  exports.Set("kernels", skein::kernelTestHooks(env));
  skein::registerConvert(env, exports);
  skein::registerExecutor(env, exports);
  return exports;
}

NODE_API_MODULE(skein, Init)
