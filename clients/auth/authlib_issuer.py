"""A second authorization server, of other makers: authlib. It writes a configured `aud`: it does not
know `resource` (RFC 8707)."""

import secrets
import threading

from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.oauth2.rfc6749 import AuthorizationCodeMixin, ClientMixin, grants
from authlib.oauth2.rfc7591 import ClientRegistrationEndpoint
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oauth2.rfc9068 import JWTBearerTokenGenerator
from authlib.oauth2.rfc9207 import IssuerParameter
from flask import Flask, jsonify, request
from joserfc.jwk import KeySet, RSAKey
from werkzeug.serving import make_server

SCOPES = ["notes:read"]


class Registered(ClientMixin):
    def __init__(self, information: dict, metadata: dict):
        self.id, self.secret = information["client_id"], information["client_secret"]
        self.metadata = metadata

    def get_client_id(self):
        return self.id

    def get_default_redirect_uri(self):
        return self.metadata["redirect_uris"][0]

    def get_allowed_scope(self, scope):
        return " ".join(one for one in (scope or "").split() if one in SCOPES)

    def check_redirect_uri(self, redirect_uri):
        return redirect_uri in self.metadata["redirect_uris"]

    def check_client_secret(self, client_secret):
        return secrets.compare_digest(self.secret, client_secret)

    def check_endpoint_auth_method(self, method, endpoint):
        return method == self.metadata.get("token_endpoint_auth_method", "client_secret_basic")

    def check_response_type(self, response_type):
        return response_type == "code"

    def check_grant_type(self, grant_type):
        return grant_type == "authorization_code"


class Person:
    def __init__(self, name: str):
        self.name = name

    def get_user_id(self):
        return self.name


class Code(AuthorizationCodeMixin):
    def __init__(self, asked):
        data = asked.payload.data
        self.client, self.person = asked.client.get_client_id(), asked.user
        self.redirect_uri, self.scope = asked.payload.redirect_uri, asked.scope
        self.code_challenge = data.get("code_challenge")
        self.code_challenge_method = data.get("code_challenge_method")

    def get_redirect_uri(self):
        return self.redirect_uri

    def get_scope(self):
        return self.scope


class Issuer:
    """Issues tokens for `audience` to every client, for the user in the parameter `user`."""

    def __init__(self, audience: str):
        app = Flask("issuer")
        self.server = make_server("127.0.0.1", 0, app, threaded=True)
        self.url = url = f"http://127.0.0.1:{self.server.server_port}"
        key = RSAKey.generate_key(2048, {"kid": "one", "use": "sig", "alg": "RS256"})
        clients, codes = {}, {}

        class Tokens(JWTBearerTokenGenerator):
            def get_jwks(self):
                return KeySet([key])

            def get_audiences(self, client, user, scope):
                return [client.get_client_id(), audience]

        class CodeGrant(grants.AuthorizationCodeGrant):
            TOKEN_ENDPOINT_AUTH_METHODS = ["none", "client_secret_basic", "client_secret_post"]

            def save_authorization_code(self, code, asked):
                codes[code] = Code(asked)

            def query_authorization_code(self, code, client):
                found = codes.get(code)
                return found if found and found.client == client.get_client_id() else None

            def delete_authorization_code(self, authorization_code):
                for code in [code for code, one in codes.items() if one is authorization_code]:
                    del codes[code]

            def authenticate_user(self, authorization_code):
                return authorization_code.person

        class Registration(ClientRegistrationEndpoint):
            def authenticate_token(self, _request):
                return "everybody"

            def get_server_metadata(self):
                return {}

            def save_client(self, client_info, client_metadata, _request):
                clients[client_info["client_id"]] = Registered(client_info, client_metadata)
                return clients[client_info["client_id"]]

        class Named(IssuerParameter):
            def get_issuer(self):
                return url

        oauth = AuthorizationServer(app, clients.get, lambda token, asked: None)
        oauth.register_token_generator("default", Tokens(issuer=url))
        oauth.register_grant(CodeGrant, [CodeChallenge(required=True)])
        oauth.register_endpoint(Registration)
        oauth.register_extension(Named())

        @app.get("/.well-known/oauth-authorization-server")
        def metadata():
            return jsonify(
                issuer=url,
                authorization_endpoint=f"{url}/authorize",
                token_endpoint=f"{url}/token",
                registration_endpoint=f"{url}/register",
                jwks_uri=f"{url}/jwks",
                response_types_supported=["code"],
                grant_types_supported=["authorization_code"],
                code_challenge_methods_supported=["S256"],
                token_endpoint_auth_methods_supported=["none", "client_secret_basic"],
                authorization_response_iss_parameter_supported=True,
                scopes_supported=SCOPES,
            )

        @app.get("/jwks")
        def jwks():
            return jsonify(keys=[key.as_dict(private=False)])

        @app.post("/register")
        def register():
            return oauth.create_endpoint_response("client_registration")

        @app.get("/authorize")
        def authorize():
            person = Person(request.args["user"])
            grant = oauth.get_consent_grant(end_user=person)
            return oauth.create_authorization_response(grant_user=person, grant=grant)

        @app.post("/token")
        def token():
            return oauth.create_token_response()

        threading.Thread(target=self.server.serve_forever, daemon=True).start()
