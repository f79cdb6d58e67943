import type { FlagType } from '../queries/flag';

/** What a program needs to evaluate a flag. */
export type SnippetRequest = {
  service: string;
  environment: string;
  key: string;
  type: FlagType;
  clientId: string;
  clientSecret: string;
};

/** Names of methods that evaluate, and values that they return if the service cannot be reached. */
const methods: Record<'go' | 'javascript' | 'python' | 'java' | 'dotnet', Record<FlagType, [string, string]>> = {
  go: {
    boolean: ['Boolean', 'false'],
    string: ['String', '""'],
    number: ['Float', '0'],
    json: ['Object', 'nil'],
  },
  javascript: {
    boolean: ['getBooleanValue', 'false'],
    string: ['getStringValue', "''"],
    number: ['getNumberValue', '0'],
    json: ['getObjectValue', '{}'],
  },
  python: {
    boolean: ['get_boolean_value', 'False'],
    string: ['get_string_value', '""'],
    number: ['get_float_value', '0.0'],
    json: ['get_object_value', '{}'],
  },
  java: {
    boolean: ['getBooleanValue', 'false'],
    string: ['getStringValue', '""'],
    number: ['getDoubleValue', '0.0'],
    json: ['getObjectValue', 'new Value()'],
  },
  dotnet: {
    boolean: ['GetBooleanValueAsync', 'false'],
    string: ['GetStringValueAsync', '""'],
    number: ['GetDoubleValueAsync', '0'],
    json: ['GetObjectValueAsync', 'new Value()'],
  },
};

export type Language = keyof typeof snippets;

/** Programs that evaluate a flag, by language. Tests run those in Go, JavaScript and curl. */
export const snippets = {
  go({ service, environment, key, type, clientId, clientSecret }: SnippetRequest): string {
    const [method, fallback] = methods.go[type];
    return `// go get github.com/open-feature/go-sdk github.com/open-feature/go-sdk-contrib/providers/ofrep golang.org/x/oauth2
package main

import (
	"context"
	"fmt"

	"github.com/open-feature/go-sdk-contrib/providers/ofrep"
	"github.com/open-feature/go-sdk/openfeature"
	"golang.org/x/oauth2/clientcredentials"
)

func main() {
	ctx := context.Background()
	credentials := clientcredentials.Config{
		ClientID:     "${clientId}",
		ClientSecret: "${clientSecret}",
		TokenURL:     "${service}/api/v1/oauth/token",
	}
	provider := ofrep.NewProvider("${service}",
		ofrep.WithClient(credentials.Client(ctx)),
		ofrep.WithHeader("X-Environment", "${environment}"))
	if err := openfeature.SetProviderAndWait(provider); err != nil {
		panic(err)
	}

	user := openfeature.NewEvaluationContext("user-42", map[string]any{"plan": "pro"})
	value := openfeature.NewDefaultClient().${method}(ctx, "${key}", ${fallback}, user)
	fmt.Println(value)
}
`;
  },

  javascript({ service, environment, key, type, clientId, clientSecret }: SnippetRequest): string {
    const [method, fallback] = methods.javascript[type];
    return `// npm install @openfeature/server-sdk @openfeature/ofrep-provider
import { OpenFeature } from '@openfeature/server-sdk';
import { OFREPProvider } from '@openfeature/ofrep-provider';

const service = '${service}';
const credentials = {
  grant_type: 'client_credentials',
  client_id: '${clientId}',
  client_secret: '${clientSecret}',
};

// A token is valid for an hour. It is replaced a minute before it expires.
let token;
let expires = 0;
async function headersFactory() {
  if (Date.now() > expires) {
    const response = await fetch(\`\${service}/api/v1/oauth/token\`, { method: 'POST', body: new URLSearchParams(credentials) });
    if (!response.ok) throw new Error(\`no token: \${response.status}\`);
    const { access_token, expires_in } = await response.json();
    token = access_token;
    expires = Date.now() + (expires_in - 60) * 1000;
  }
  return [['Authorization', \`Bearer \${token}\`], ['X-Environment', '${environment}']];
}

await OpenFeature.setProviderAndWait(new OFREPProvider({ baseUrl: service, headersFactory }));
const user = { targetingKey: 'user-42', plan: 'pro' };
const value = await OpenFeature.getClient().${method}('${key}', ${fallback}, user);
console.log(value);
`;
  },

  web({ service, environment, key, type }: SnippetRequest): string {
    const [method, fallback] = methods.javascript[type];
    return `// npm install @openfeature/web-sdk @openfeature/ofrep-web-provider
import { OpenFeature } from '@openfeature/web-sdk';
import { OFREPWebProvider } from '@openfeature/ofrep-web-provider';

// A browser must not have the secret: your server gets the token of a client, and answers /flag-token with it.
async function headersFactory() {
  const response = await fetch('/flag-token');
  return [['Authorization', \`Bearer \${await response.text()}\`], ['X-Environment', '${environment}']];
}

// The setting FLAGLEDGER_CORS_ORIGINS of the service must have the origin of your page.
await OpenFeature.setContext({ targetingKey: 'user-42', plan: 'pro' });
await OpenFeature.setProviderAndWait(new OFREPWebProvider({ baseUrl: '${service}', headersFactory }));
const value = OpenFeature.getClient().${method}('${key}', ${fallback});
console.log(value);
`;
  },

  python({ service, environment, key, type, clientId, clientSecret }: SnippetRequest): string {
    const [method, fallback] = methods.python[type];
    return `# pip install openfeature-sdk openfeature-provider-ofrep
import time

import requests
from openfeature import api
from openfeature.contrib.provider.ofrep import OFREPProvider
from openfeature.evaluation_context import EvaluationContext

SERVICE = "${service}"
CREDENTIALS = {
    "grant_type": "client_credentials",
    "client_id": "${clientId}",
    "client_secret": "${clientSecret}",
}

# A token is valid for an hour. It is replaced a minute before it expires.
token, expires = "", 0.0


def headers():
    global token, expires
    if time.time() > expires:
        response = requests.post(f"{SERVICE}/api/v1/oauth/token", data=CREDENTIALS, timeout=10)
        response.raise_for_status()
        token = response.json()["access_token"]
        expires = time.time() + response.json()["expires_in"] - 60
    return {"Authorization": f"Bearer {token}", "X-Environment": "${environment}"}


api.set_provider(OFREPProvider(SERVICE, headers_factory=headers))
user = EvaluationContext("user-42", {"plan": "pro"})
${type === 'number' ? '# It is get_integer_value for whole numbers.\n' : ''}print(api.get_client().${method}("${key}", ${fallback}, user))
`;
  },

  java({ service, environment, key, type, clientId, clientSecret }: SnippetRequest): string {
    const [method, fallback] = methods.java[type];
    return `// Maven: dev.openfeature:sdk and dev.openfeature.contrib.providers:ofrep
import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.openfeature.contrib.providers.ofrep.OfrepProvider;
import dev.openfeature.contrib.providers.ofrep.OfrepProviderOptions;
import dev.openfeature.sdk.*;
import java.net.URI;
import java.net.http.*;
import java.util.concurrent.*;

public class App {
  static final String SERVICE = "${service}";
  static final String CREDENTIALS =
      "grant_type=client_credentials&client_id=${clientId}&client_secret=${clientSecret}";

  static void connect() {
    try {
      var request = HttpRequest.newBuilder(URI.create(SERVICE + "/api/v1/oauth/token"))
          .header("Content-Type", "application/x-www-form-urlencoded")
          .POST(HttpRequest.BodyPublishers.ofString(CREDENTIALS))
          .build();
      var response = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
      if (response.statusCode() != 200) throw new IllegalStateException("no token: " + response.statusCode());
      var token = response.body().replaceAll("(?s).*\\"access_token\\":\\"([^\\"]*)\\".*", "$1");
      var options = OfrepProviderOptions.builder()
          .baseUrl(SERVICE)
          .headers(ImmutableMap.of(
              "Authorization", ImmutableList.of("Bearer " + token),
              "X-Environment", ImmutableList.of("${environment}")))
          .build();
      OpenFeatureAPI.getInstance().setProviderAndWait(OfrepProvider.constructProvider(options));
    } catch (Exception e) {
      throw new IllegalStateException(e);
    }
  }

  public static void main(String[] args) {
    connect();
    // A token is valid for an hour: a new one is used every 50 minutes.
    Executors.newScheduledThreadPool(1).scheduleAtFixedRate(App::connect, 50, 50, TimeUnit.MINUTES);

    var user = new MutableContext("user-42").add("plan", "pro");
    System.out.println(OpenFeatureAPI.getInstance().getClient().${method}("${key}", ${fallback}, user));
  }
}
`;
  },

  dotnet({ service, environment, key, type, clientId, clientSecret }: SnippetRequest): string {
    const [method, fallback] = methods.dotnet[type];
    return `// dotnet add package OpenFeature.Providers.Ofrep
using System.Net.Http.Json;
using System.Text.Json;
using OpenFeature;
using OpenFeature.Model;
using OpenFeature.Providers.Ofrep;
using OpenFeature.Providers.Ofrep.Configuration;

const string service = "${service}";
var http = new HttpClient();

async Task Connect()
{
    var response = await http.PostAsync($"{service}/api/v1/oauth/token", new FormUrlEncodedContent(new Dictionary<string, string>
    {
        ["grant_type"] = "client_credentials",
        ["client_id"] = "${clientId}",
        ["client_secret"] = "${clientSecret}",
    }));
    response.EnsureSuccessStatusCode();
    var token = (await response.Content.ReadFromJsonAsync<JsonElement>()).GetProperty("access_token").GetString();
    await Api.Instance.SetProviderAsync(new OfrepProvider(new OfrepOptions(service)
    {
        Headers = new() { ["Authorization"] = $"Bearer {token}", ["X-Environment"] = "${environment}" },
    }));
}

await Connect();
// A token is valid for an hour: a new one is used every 50 minutes.
using var timer = new Timer(_ => _ = Connect(), null, TimeSpan.FromMinutes(50), TimeSpan.FromMinutes(50));

var user = EvaluationContext.Builder().SetTargetingKey("user-42").Set("plan", "pro").Build();
Console.WriteLine(await Api.Instance.GetClient().${method}("${key}", ${fallback}, user));
`;
  },

  curl({ service, environment, key, clientId, clientSecret }: SnippetRequest): string {
    return `TOKEN=$(curl -s ${service}/api/v1/oauth/token -u '${clientId}:${clientSecret}' \\
  -d grant_type=client_credentials | sed 's/.*"access_token":"\\([^"]*\\)".*/\\1/')
curl -s ${service}/ofrep/v1/evaluate/flags/${key} \\
  -H "Authorization: Bearer $TOKEN" \\
  -H 'X-Environment: ${environment}' \\
  -H 'Content-Type: application/json' \\
  -d '{"context":{"targetingKey":"user-42","plan":"pro"}}'
`;
  },
};
