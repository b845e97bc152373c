impl serde::Serialize for Action {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.id != 0 {
            len += 1;
        }
        if self.reason != 0 {
            len += 1;
        }
        if !self.message.is_empty() {
            len += 1;
        }
        if !self.success_events.is_empty() {
            len += 1;
        }
        if self.failure_event.is_some() {
            len += 1;
        }
        if self.kind.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.Action", len)?;
        if self.id != 0 {
            struct_ser.serialize_field("id", &self.id)?;
        }
        if self.reason != 0 {
            let v = Reason::try_from(self.reason)
                .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", self.reason)))?;
            struct_ser.serialize_field("reason", &v)?;
        }
        if !self.message.is_empty() {
            struct_ser.serialize_field("message", &self.message)?;
        }
        if !self.success_events.is_empty() {
            struct_ser.serialize_field("successEvents", &self.success_events)?;
        }
        if let Some(v) = self.failure_event.as_ref() {
            struct_ser.serialize_field("failureEvent", v)?;
        }
        if let Some(v) = self.kind.as_ref() {
            match v {
                action::Kind::CreateRevision(v) => {
                    struct_ser.serialize_field("createRevision", v)?;
                }
                action::Kind::UpdateRevision(v) => {
                    struct_ser.serialize_field("updateRevision", v)?;
                }
                action::Kind::DeleteRevision(v) => {
                    struct_ser.serialize_field("deleteRevision", v)?;
                }
                action::Kind::AdoptRevision(v) => {
                    struct_ser.serialize_field("adoptRevision", v)?;
                }
                action::Kind::ReleaseRevision(v) => {
                    struct_ser.serialize_field("releaseRevision", v)?;
                }
                action::Kind::AdoptPod(v) => {
                    struct_ser.serialize_field("adoptPod", v)?;
                }
                action::Kind::ReleasePod(v) => {
                    struct_ser.serialize_field("releasePod", v)?;
                }
                action::Kind::RelabelPod(v) => {
                    struct_ser.serialize_field("relabelPod", v)?;
                }
                action::Kind::CreatePod(v) => {
                    struct_ser.serialize_field("createPod", v)?;
                }
                action::Kind::DeletePod(v) => {
                    struct_ser.serialize_field("deletePod", v)?;
                }
                action::Kind::UpdateStatus(v) => {
                    struct_ser.serialize_field("updateStatus", v)?;
                }
                action::Kind::EmitEvent(v) => {
                    struct_ser.serialize_field("emitEvent", v)?;
                }
                action::Kind::CreateObject(v) => {
                    struct_ser.serialize_field("createObject", v)?;
                }
                action::Kind::PatchObject(v) => {
                    struct_ser.serialize_field("patchObject", v)?;
                }
                action::Kind::DeleteObject(v) => {
                    struct_ser.serialize_field("deleteObject", v)?;
                }
                action::Kind::EvictPod(v) => {
                    struct_ser.serialize_field("evictPod", v)?;
                }
                action::Kind::Measure(v) => {
                    struct_ser.serialize_field("measure", v)?;
                }
            }
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Action {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "id",
            "reason",
            "message",
            "success_events",
            "successEvents",
            "failure_event",
            "failureEvent",
            "create_revision",
            "createRevision",
            "update_revision",
            "updateRevision",
            "delete_revision",
            "deleteRevision",
            "adopt_revision",
            "adoptRevision",
            "release_revision",
            "releaseRevision",
            "adopt_pod",
            "adoptPod",
            "release_pod",
            "releasePod",
            "relabel_pod",
            "relabelPod",
            "create_pod",
            "createPod",
            "delete_pod",
            "deletePod",
            "update_status",
            "updateStatus",
            "emit_event",
            "emitEvent",
            "create_object",
            "createObject",
            "patch_object",
            "patchObject",
            "delete_object",
            "deleteObject",
            "evict_pod",
            "evictPod",
            "measure",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Id,
            Reason,
            Message,
            SuccessEvents,
            FailureEvent,
            CreateRevision,
            UpdateRevision,
            DeleteRevision,
            AdoptRevision,
            ReleaseRevision,
            AdoptPod,
            ReleasePod,
            RelabelPod,
            CreatePod,
            DeletePod,
            UpdateStatus,
            EmitEvent,
            CreateObject,
            PatchObject,
            DeleteObject,
            EvictPod,
            Measure,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "id" => Ok(GeneratedField::Id),
                            "reason" => Ok(GeneratedField::Reason),
                            "message" => Ok(GeneratedField::Message),
                            "successEvents" | "success_events" => Ok(GeneratedField::SuccessEvents),
                            "failureEvent" | "failure_event" => Ok(GeneratedField::FailureEvent),
                            "createRevision" | "create_revision" => Ok(GeneratedField::CreateRevision),
                            "updateRevision" | "update_revision" => Ok(GeneratedField::UpdateRevision),
                            "deleteRevision" | "delete_revision" => Ok(GeneratedField::DeleteRevision),
                            "adoptRevision" | "adopt_revision" => Ok(GeneratedField::AdoptRevision),
                            "releaseRevision" | "release_revision" => Ok(GeneratedField::ReleaseRevision),
                            "adoptPod" | "adopt_pod" => Ok(GeneratedField::AdoptPod),
                            "releasePod" | "release_pod" => Ok(GeneratedField::ReleasePod),
                            "relabelPod" | "relabel_pod" => Ok(GeneratedField::RelabelPod),
                            "createPod" | "create_pod" => Ok(GeneratedField::CreatePod),
                            "deletePod" | "delete_pod" => Ok(GeneratedField::DeletePod),
                            "updateStatus" | "update_status" => Ok(GeneratedField::UpdateStatus),
                            "emitEvent" | "emit_event" => Ok(GeneratedField::EmitEvent),
                            "createObject" | "create_object" => Ok(GeneratedField::CreateObject),
                            "patchObject" | "patch_object" => Ok(GeneratedField::PatchObject),
                            "deleteObject" | "delete_object" => Ok(GeneratedField::DeleteObject),
                            "evictPod" | "evict_pod" => Ok(GeneratedField::EvictPod),
                            "measure" => Ok(GeneratedField::Measure),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Action;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.Action")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Action, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut id__ = None;
                let mut reason__ = None;
                let mut message__ = None;
                let mut success_events__ = None;
                let mut failure_event__ = None;
                let mut kind__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Id => {
                            if id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("id"));
                            }
                            id__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Reason => {
                            if reason__.is_some() {
                                return Err(serde::de::Error::duplicate_field("reason"));
                            }
                            reason__ = Some(map_.next_value::<Reason>()? as i32);
                        }
                        GeneratedField::Message => {
                            if message__.is_some() {
                                return Err(serde::de::Error::duplicate_field("message"));
                            }
                            message__ = Some(map_.next_value()?);
                        }
                        GeneratedField::SuccessEvents => {
                            if success_events__.is_some() {
                                return Err(serde::de::Error::duplicate_field("successEvents"));
                            }
                            success_events__ = Some(map_.next_value()?);
                        }
                        GeneratedField::FailureEvent => {
                            if failure_event__.is_some() {
                                return Err(serde::de::Error::duplicate_field("failureEvent"));
                            }
                            failure_event__ = map_.next_value()?;
                        }
                        GeneratedField::CreateRevision => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("createRevision"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(action::Kind::CreateRevision)
;
                        }
                        GeneratedField::UpdateRevision => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("updateRevision"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(action::Kind::UpdateRevision)
;
                        }
                        GeneratedField::DeleteRevision => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("deleteRevision"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(action::Kind::DeleteRevision)
;
                        }
                        GeneratedField::AdoptRevision => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("adoptRevision"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(action::Kind::AdoptRevision)
;
                        }
                        GeneratedField::ReleaseRevision => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("releaseRevision"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(action::Kind::ReleaseRevision)
;
                        }
                        GeneratedField::AdoptPod => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("adoptPod"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(action::Kind::AdoptPod)
;
                        }
                        GeneratedField::ReleasePod => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("releasePod"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(action::Kind::ReleasePod)
;
                        }
                        GeneratedField::RelabelPod => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("relabelPod"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(action::Kind::RelabelPod)
;
                        }
                        GeneratedField::CreatePod => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("createPod"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(action::Kind::CreatePod)
;
                        }
                        GeneratedField::DeletePod => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("deletePod"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(action::Kind::DeletePod)
;
                        }
                        GeneratedField::UpdateStatus => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("updateStatus"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(action::Kind::UpdateStatus)
;
                        }
                        GeneratedField::EmitEvent => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("emitEvent"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(action::Kind::EmitEvent)
;
                        }
                        GeneratedField::CreateObject => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("createObject"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(action::Kind::CreateObject)
;
                        }
                        GeneratedField::PatchObject => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("patchObject"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(action::Kind::PatchObject)
;
                        }
                        GeneratedField::DeleteObject => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("deleteObject"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(action::Kind::DeleteObject)
;
                        }
                        GeneratedField::EvictPod => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("evictPod"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(action::Kind::EvictPod)
;
                        }
                        GeneratedField::Measure => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("measure"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(action::Kind::Measure)
;
                        }
                    }
                }
                Ok(Action {
                    id: id__.unwrap_or_default(),
                    reason: reason__.unwrap_or_default(),
                    message: message__.unwrap_or_default(),
                    success_events: success_events__.unwrap_or_default(),
                    failure_event: failure_event__,
                    kind: kind__,
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.Action", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for AdoptPod {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.pod.is_some() {
            len += 1;
        }
        if !self.patch.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.AdoptPod", len)?;
        if let Some(v) = self.pod.as_ref() {
            struct_ser.serialize_field("pod", v)?;
        }
        if !self.patch.is_empty() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("patch", pbjson::private::base64::encode(&self.patch).as_str())?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for AdoptPod {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "pod",
            "patch",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Pod,
            Patch,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "pod" => Ok(GeneratedField::Pod),
                            "patch" => Ok(GeneratedField::Patch),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = AdoptPod;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.AdoptPod")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<AdoptPod, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut pod__ = None;
                let mut patch__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Pod => {
                            if pod__.is_some() {
                                return Err(serde::de::Error::duplicate_field("pod"));
                            }
                            pod__ = map_.next_value()?;
                        }
                        GeneratedField::Patch => {
                            if patch__.is_some() {
                                return Err(serde::de::Error::duplicate_field("patch"));
                            }
                            patch__ = 
                                Some(map_.next_value::<::pbjson::private::BytesDeserialize<_>>()?.0)
                            ;
                        }
                    }
                }
                Ok(AdoptPod {
                    pod: pod__,
                    patch: patch__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.AdoptPod", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for AdoptRevision {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.revision.is_some() {
            len += 1;
        }
        if !self.patch.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.AdoptRevision", len)?;
        if let Some(v) = self.revision.as_ref() {
            struct_ser.serialize_field("revision", v)?;
        }
        if !self.patch.is_empty() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("patch", pbjson::private::base64::encode(&self.patch).as_str())?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for AdoptRevision {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "revision",
            "patch",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Revision,
            Patch,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "revision" => Ok(GeneratedField::Revision),
                            "patch" => Ok(GeneratedField::Patch),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = AdoptRevision;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.AdoptRevision")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<AdoptRevision, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut revision__ = None;
                let mut patch__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Revision => {
                            if revision__.is_some() {
                                return Err(serde::de::Error::duplicate_field("revision"));
                            }
                            revision__ = map_.next_value()?;
                        }
                        GeneratedField::Patch => {
                            if patch__.is_some() {
                                return Err(serde::de::Error::duplicate_field("patch"));
                            }
                            patch__ = 
                                Some(map_.next_value::<::pbjson::private::BytesDeserialize<_>>()?.0)
                            ;
                        }
                    }
                }
                Ok(AdoptRevision {
                    revision: revision__,
                    patch: patch__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.AdoptRevision", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for AnalysisVerdict {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        let variant = match self {
            Self::Unspecified => "ANALYSIS_VERDICT_UNSPECIFIED",
            Self::Pass => "ANALYSIS_VERDICT_PASS",
            Self::Fail => "ANALYSIS_VERDICT_FAIL",
            Self::Inconclusive => "ANALYSIS_VERDICT_INCONCLUSIVE",
        };
        serializer.serialize_str(variant)
    }
}
impl<'de> serde::Deserialize<'de> for AnalysisVerdict {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "ANALYSIS_VERDICT_UNSPECIFIED",
            "ANALYSIS_VERDICT_PASS",
            "ANALYSIS_VERDICT_FAIL",
            "ANALYSIS_VERDICT_INCONCLUSIVE",
        ];

        struct GeneratedVisitor;

        impl serde::de::Visitor<'_> for GeneratedVisitor {
            type Value = AnalysisVerdict;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(formatter, "expected one of: {:?}", &FIELDS)
            }

            fn visit_i64<E>(self, v: i64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Signed(v), &self)
                    })
            }

            fn visit_u64<E>(self, v: u64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Unsigned(v), &self)
                    })
            }

            fn visit_str<E>(self, value: &str) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                match value {
                    "ANALYSIS_VERDICT_UNSPECIFIED" => Ok(AnalysisVerdict::Unspecified),
                    "ANALYSIS_VERDICT_PASS" => Ok(AnalysisVerdict::Pass),
                    "ANALYSIS_VERDICT_FAIL" => Ok(AnalysisVerdict::Fail),
                    "ANALYSIS_VERDICT_INCONCLUSIVE" => Ok(AnalysisVerdict::Inconclusive),
                    _ => Err(serde::de::Error::unknown_variant(value, FIELDS)),
                }
            }
        }
        deserializer.deserialize_any(GeneratedVisitor)
    }
}
impl serde::Serialize for Batch {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.actions.is_empty() {
            len += 1;
        }
        if self.confirm_workload {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.Batch", len)?;
        if !self.actions.is_empty() {
            struct_ser.serialize_field("actions", &self.actions)?;
        }
        if self.confirm_workload {
            struct_ser.serialize_field("confirmWorkload", &self.confirm_workload)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Batch {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "actions",
            "confirm_workload",
            "confirmWorkload",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Actions,
            ConfirmWorkload,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "actions" => Ok(GeneratedField::Actions),
                            "confirmWorkload" | "confirm_workload" => Ok(GeneratedField::ConfirmWorkload),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Batch;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.Batch")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Batch, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut actions__ = None;
                let mut confirm_workload__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Actions => {
                            if actions__.is_some() {
                                return Err(serde::de::Error::duplicate_field("actions"));
                            }
                            actions__ = Some(map_.next_value()?);
                        }
                        GeneratedField::ConfirmWorkload => {
                            if confirm_workload__.is_some() {
                                return Err(serde::de::Error::duplicate_field("confirmWorkload"));
                            }
                            confirm_workload__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(Batch {
                    actions: actions__.unwrap_or_default(),
                    confirm_workload: confirm_workload__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.Batch", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for BlockCause {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.reason.is_empty() {
            len += 1;
        }
        if !self.message.is_empty() {
            len += 1;
        }
        if !self.container.is_empty() {
            len += 1;
        }
        if !self.units.is_empty() {
            len += 1;
        }
        if self.more_units != 0 {
            len += 1;
        }
        if self.since.is_some() {
            len += 1;
        }
        if self.restarts != 0 {
            len += 1;
        }
        if !self.last_exit.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.BlockCause", len)?;
        if !self.reason.is_empty() {
            struct_ser.serialize_field("reason", &self.reason)?;
        }
        if !self.message.is_empty() {
            struct_ser.serialize_field("message", &self.message)?;
        }
        if !self.container.is_empty() {
            struct_ser.serialize_field("container", &self.container)?;
        }
        if !self.units.is_empty() {
            struct_ser.serialize_field("units", &self.units)?;
        }
        if self.more_units != 0 {
            struct_ser.serialize_field("moreUnits", &self.more_units)?;
        }
        if let Some(v) = self.since.as_ref() {
            struct_ser.serialize_field("since", v)?;
        }
        if self.restarts != 0 {
            struct_ser.serialize_field("restarts", &self.restarts)?;
        }
        if !self.last_exit.is_empty() {
            struct_ser.serialize_field("lastExit", &self.last_exit)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for BlockCause {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "reason",
            "message",
            "container",
            "units",
            "more_units",
            "moreUnits",
            "since",
            "restarts",
            "last_exit",
            "lastExit",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Reason,
            Message,
            Container,
            Units,
            MoreUnits,
            Since,
            Restarts,
            LastExit,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "reason" => Ok(GeneratedField::Reason),
                            "message" => Ok(GeneratedField::Message),
                            "container" => Ok(GeneratedField::Container),
                            "units" => Ok(GeneratedField::Units),
                            "moreUnits" | "more_units" => Ok(GeneratedField::MoreUnits),
                            "since" => Ok(GeneratedField::Since),
                            "restarts" => Ok(GeneratedField::Restarts),
                            "lastExit" | "last_exit" => Ok(GeneratedField::LastExit),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = BlockCause;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.BlockCause")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<BlockCause, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut reason__ = None;
                let mut message__ = None;
                let mut container__ = None;
                let mut units__ = None;
                let mut more_units__ = None;
                let mut since__ = None;
                let mut restarts__ = None;
                let mut last_exit__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Reason => {
                            if reason__.is_some() {
                                return Err(serde::de::Error::duplicate_field("reason"));
                            }
                            reason__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Message => {
                            if message__.is_some() {
                                return Err(serde::de::Error::duplicate_field("message"));
                            }
                            message__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Container => {
                            if container__.is_some() {
                                return Err(serde::de::Error::duplicate_field("container"));
                            }
                            container__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Units => {
                            if units__.is_some() {
                                return Err(serde::de::Error::duplicate_field("units"));
                            }
                            units__ = Some(map_.next_value()?);
                        }
                        GeneratedField::MoreUnits => {
                            if more_units__.is_some() {
                                return Err(serde::de::Error::duplicate_field("moreUnits"));
                            }
                            more_units__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Since => {
                            if since__.is_some() {
                                return Err(serde::de::Error::duplicate_field("since"));
                            }
                            since__ = map_.next_value()?;
                        }
                        GeneratedField::Restarts => {
                            if restarts__.is_some() {
                                return Err(serde::de::Error::duplicate_field("restarts"));
                            }
                            restarts__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::LastExit => {
                            if last_exit__.is_some() {
                                return Err(serde::de::Error::duplicate_field("lastExit"));
                            }
                            last_exit__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(BlockCause {
                    reason: reason__.unwrap_or_default(),
                    message: message__.unwrap_or_default(),
                    container: container__.unwrap_or_default(),
                    units: units__.unwrap_or_default(),
                    more_units: more_units__.unwrap_or_default(),
                    since: since__,
                    restarts: restarts__.unwrap_or_default(),
                    last_exit: last_exit__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.BlockCause", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for BlockedEviction {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.pod_uid.is_empty() {
            len += 1;
        }
        if !self.message.is_empty() {
            len += 1;
        }
        if self.retry_time.is_some() {
            len += 1;
        }
        if self.attempts != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.BlockedEviction", len)?;
        if !self.pod_uid.is_empty() {
            struct_ser.serialize_field("podUid", &self.pod_uid)?;
        }
        if !self.message.is_empty() {
            struct_ser.serialize_field("message", &self.message)?;
        }
        if let Some(v) = self.retry_time.as_ref() {
            struct_ser.serialize_field("retryTime", v)?;
        }
        if self.attempts != 0 {
            struct_ser.serialize_field("attempts", &self.attempts)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for BlockedEviction {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "pod_uid",
            "podUid",
            "message",
            "retry_time",
            "retryTime",
            "attempts",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            PodUid,
            Message,
            RetryTime,
            Attempts,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "podUid" | "pod_uid" => Ok(GeneratedField::PodUid),
                            "message" => Ok(GeneratedField::Message),
                            "retryTime" | "retry_time" => Ok(GeneratedField::RetryTime),
                            "attempts" => Ok(GeneratedField::Attempts),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = BlockedEviction;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.BlockedEviction")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<BlockedEviction, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut pod_uid__ = None;
                let mut message__ = None;
                let mut retry_time__ = None;
                let mut attempts__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::PodUid => {
                            if pod_uid__.is_some() {
                                return Err(serde::de::Error::duplicate_field("podUid"));
                            }
                            pod_uid__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Message => {
                            if message__.is_some() {
                                return Err(serde::de::Error::duplicate_field("message"));
                            }
                            message__ = Some(map_.next_value()?);
                        }
                        GeneratedField::RetryTime => {
                            if retry_time__.is_some() {
                                return Err(serde::de::Error::duplicate_field("retryTime"));
                            }
                            retry_time__ = map_.next_value()?;
                        }
                        GeneratedField::Attempts => {
                            if attempts__.is_some() {
                                return Err(serde::de::Error::duplicate_field("attempts"));
                            }
                            attempts__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                    }
                }
                Ok(BlockedEviction {
                    pod_uid: pod_uid__.unwrap_or_default(),
                    message: message__.unwrap_or_default(),
                    retry_time: retry_time__,
                    attempts: attempts__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.BlockedEviction", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Bucket {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.data.is_some() {
            len += 1;
        }
        if !self.digest.is_empty() {
            len += 1;
        }
        if self.data_with_shared_labels.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.Bucket", len)?;
        if let Some(v) = self.data.as_ref() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("data", pbjson::private::base64::encode(&v).as_str())?;
        }
        if !self.digest.is_empty() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("digest", pbjson::private::base64::encode(&self.digest).as_str())?;
        }
        if let Some(v) = self.data_with_shared_labels.as_ref() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("dataWithSharedLabels", pbjson::private::base64::encode(&v).as_str())?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Bucket {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "data",
            "digest",
            "data_with_shared_labels",
            "dataWithSharedLabels",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Data,
            Digest,
            DataWithSharedLabels,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "data" => Ok(GeneratedField::Data),
                            "digest" => Ok(GeneratedField::Digest),
                            "dataWithSharedLabels" | "data_with_shared_labels" => Ok(GeneratedField::DataWithSharedLabels),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Bucket;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.Bucket")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Bucket, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut data__ = None;
                let mut digest__ = None;
                let mut data_with_shared_labels__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Data => {
                            if data__.is_some() {
                                return Err(serde::de::Error::duplicate_field("data"));
                            }
                            data__ = 
                                map_.next_value::<::std::option::Option<::pbjson::private::BytesDeserialize<_>>>()?.map(|x| x.0)
                            ;
                        }
                        GeneratedField::Digest => {
                            if digest__.is_some() {
                                return Err(serde::de::Error::duplicate_field("digest"));
                            }
                            digest__ = 
                                Some(map_.next_value::<::pbjson::private::BytesDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::DataWithSharedLabels => {
                            if data_with_shared_labels__.is_some() {
                                return Err(serde::de::Error::duplicate_field("dataWithSharedLabels"));
                            }
                            data_with_shared_labels__ = 
                                map_.next_value::<::std::option::Option<::pbjson::private::BytesDeserialize<_>>>()?.map(|x| x.0)
                            ;
                        }
                    }
                }
                Ok(Bucket {
                    data: data__,
                    digest: digest__.unwrap_or_default(),
                    data_with_shared_labels: data_with_shared_labels__,
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.Bucket", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for CallError {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.code != 0 {
            len += 1;
        }
        if !self.message.is_empty() {
            len += 1;
        }
        if !self.status.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.CallError", len)?;
        if self.code != 0 {
            struct_ser.serialize_field("code", &self.code)?;
        }
        if !self.message.is_empty() {
            struct_ser.serialize_field("message", &self.message)?;
        }
        if !self.status.is_empty() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("status", pbjson::private::base64::encode(&self.status).as_str())?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for CallError {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "code",
            "message",
            "status",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Code,
            Message,
            Status,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "code" => Ok(GeneratedField::Code),
                            "message" => Ok(GeneratedField::Message),
                            "status" => Ok(GeneratedField::Status),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = CallError;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.CallError")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<CallError, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut code__ = None;
                let mut message__ = None;
                let mut status__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Code => {
                            if code__.is_some() {
                                return Err(serde::de::Error::duplicate_field("code"));
                            }
                            code__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Message => {
                            if message__.is_some() {
                                return Err(serde::de::Error::duplicate_field("message"));
                            }
                            message__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Status => {
                            if status__.is_some() {
                                return Err(serde::de::Error::duplicate_field("status"));
                            }
                            status__ = 
                                Some(map_.next_value::<::pbjson::private::BytesDeserialize<_>>()?.0)
                            ;
                        }
                    }
                }
                Ok(CallError {
                    code: code__.unwrap_or_default(),
                    message: message__.unwrap_or_default(),
                    status: status__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.CallError", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Claim {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        let variant = match self {
            Self::Unspecified => "CLAIM_UNSPECIFIED",
            Self::Adopt => "CLAIM_ADOPT",
            Self::Release => "CLAIM_RELEASE",
        };
        serializer.serialize_str(variant)
    }
}
impl<'de> serde::Deserialize<'de> for Claim {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "CLAIM_UNSPECIFIED",
            "CLAIM_ADOPT",
            "CLAIM_RELEASE",
        ];

        struct GeneratedVisitor;

        impl serde::de::Visitor<'_> for GeneratedVisitor {
            type Value = Claim;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(formatter, "expected one of: {:?}", &FIELDS)
            }

            fn visit_i64<E>(self, v: i64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Signed(v), &self)
                    })
            }

            fn visit_u64<E>(self, v: u64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Unsigned(v), &self)
                    })
            }

            fn visit_str<E>(self, value: &str) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                match value {
                    "CLAIM_UNSPECIFIED" => Ok(Claim::Unspecified),
                    "CLAIM_ADOPT" => Ok(Claim::Adopt),
                    "CLAIM_RELEASE" => Ok(Claim::Release),
                    _ => Err(serde::de::Error::unknown_variant(value, FIELDS)),
                }
            }
        }
        deserializer.deserialize_any(GeneratedVisitor)
    }
}
impl serde::Serialize for Condition {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.r#type.is_empty() {
            len += 1;
        }
        if !self.status.is_empty() {
            len += 1;
        }
        if !self.reason.is_empty() {
            len += 1;
        }
        if !self.message.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.Condition", len)?;
        if !self.r#type.is_empty() {
            struct_ser.serialize_field("type", &self.r#type)?;
        }
        if !self.status.is_empty() {
            struct_ser.serialize_field("status", &self.status)?;
        }
        if !self.reason.is_empty() {
            struct_ser.serialize_field("reason", &self.reason)?;
        }
        if !self.message.is_empty() {
            struct_ser.serialize_field("message", &self.message)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Condition {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "type",
            "status",
            "reason",
            "message",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Type,
            Status,
            Reason,
            Message,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "type" => Ok(GeneratedField::Type),
                            "status" => Ok(GeneratedField::Status),
                            "reason" => Ok(GeneratedField::Reason),
                            "message" => Ok(GeneratedField::Message),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Condition;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.Condition")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Condition, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut r#type__ = None;
                let mut status__ = None;
                let mut reason__ = None;
                let mut message__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Type => {
                            if r#type__.is_some() {
                                return Err(serde::de::Error::duplicate_field("type"));
                            }
                            r#type__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Status => {
                            if status__.is_some() {
                                return Err(serde::de::Error::duplicate_field("status"));
                            }
                            status__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Reason => {
                            if reason__.is_some() {
                                return Err(serde::de::Error::duplicate_field("reason"));
                            }
                            reason__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Message => {
                            if message__.is_some() {
                                return Err(serde::de::Error::duplicate_field("message"));
                            }
                            message__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(Condition {
                    r#type: r#type__.unwrap_or_default(),
                    status: status__.unwrap_or_default(),
                    reason: reason__.unwrap_or_default(),
                    message: message__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.Condition", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ConditionStatus {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        let variant = match self {
            Self::Unspecified => "CONDITION_STATUS_UNSPECIFIED",
            Self::True => "CONDITION_STATUS_TRUE",
            Self::False => "CONDITION_STATUS_FALSE",
            Self::Unknown => "CONDITION_STATUS_UNKNOWN",
        };
        serializer.serialize_str(variant)
    }
}
impl<'de> serde::Deserialize<'de> for ConditionStatus {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "CONDITION_STATUS_UNSPECIFIED",
            "CONDITION_STATUS_TRUE",
            "CONDITION_STATUS_FALSE",
            "CONDITION_STATUS_UNKNOWN",
        ];

        struct GeneratedVisitor;

        impl serde::de::Visitor<'_> for GeneratedVisitor {
            type Value = ConditionStatus;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(formatter, "expected one of: {:?}", &FIELDS)
            }

            fn visit_i64<E>(self, v: i64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Signed(v), &self)
                    })
            }

            fn visit_u64<E>(self, v: u64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Unsigned(v), &self)
                    })
            }

            fn visit_str<E>(self, value: &str) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                match value {
                    "CONDITION_STATUS_UNSPECIFIED" => Ok(ConditionStatus::Unspecified),
                    "CONDITION_STATUS_TRUE" => Ok(ConditionStatus::True),
                    "CONDITION_STATUS_FALSE" => Ok(ConditionStatus::False),
                    "CONDITION_STATUS_UNKNOWN" => Ok(ConditionStatus::Unknown),
                    _ => Err(serde::de::Error::unknown_variant(value, FIELDS)),
                }
            }
        }
        deserializer.deserialize_any(GeneratedVisitor)
    }
}
impl serde::Serialize for ControllerReference {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.kind.is_empty() {
            len += 1;
        }
        if !self.name.is_empty() {
            len += 1;
        }
        if !self.uid.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.ControllerReference", len)?;
        if !self.kind.is_empty() {
            struct_ser.serialize_field("kind", &self.kind)?;
        }
        if !self.name.is_empty() {
            struct_ser.serialize_field("name", &self.name)?;
        }
        if !self.uid.is_empty() {
            struct_ser.serialize_field("uid", &self.uid)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ControllerReference {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "kind",
            "name",
            "uid",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Kind,
            Name,
            Uid,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "kind" => Ok(GeneratedField::Kind),
                            "name" => Ok(GeneratedField::Name),
                            "uid" => Ok(GeneratedField::Uid),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ControllerReference;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.ControllerReference")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ControllerReference, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut kind__ = None;
                let mut name__ = None;
                let mut uid__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Kind => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("kind"));
                            }
                            kind__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Name => {
                            if name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("name"));
                            }
                            name__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Uid => {
                            if uid__.is_some() {
                                return Err(serde::de::Error::duplicate_field("uid"));
                            }
                            uid__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(ControllerReference {
                    kind: kind__.unwrap_or_default(),
                    name: name__.unwrap_or_default(),
                    uid: uid__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.ControllerReference", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ControllerRevision {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.object.is_empty() {
            len += 1;
        }
        if self.read_after_name_collision {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.ControllerRevision", len)?;
        if !self.object.is_empty() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("object", pbjson::private::base64::encode(&self.object).as_str())?;
        }
        if self.read_after_name_collision {
            struct_ser.serialize_field("readAfterNameCollision", &self.read_after_name_collision)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ControllerRevision {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "object",
            "read_after_name_collision",
            "readAfterNameCollision",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Object,
            ReadAfterNameCollision,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "object" => Ok(GeneratedField::Object),
                            "readAfterNameCollision" | "read_after_name_collision" => Ok(GeneratedField::ReadAfterNameCollision),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ControllerRevision;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.ControllerRevision")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ControllerRevision, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut object__ = None;
                let mut read_after_name_collision__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Object => {
                            if object__.is_some() {
                                return Err(serde::de::Error::duplicate_field("object"));
                            }
                            object__ = 
                                Some(map_.next_value::<::pbjson::private::BytesDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::ReadAfterNameCollision => {
                            if read_after_name_collision__.is_some() {
                                return Err(serde::de::Error::duplicate_field("readAfterNameCollision"));
                            }
                            read_after_name_collision__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(ControllerRevision {
                    object: object__.unwrap_or_default(),
                    read_after_name_collision: read_after_name_collision__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.ControllerRevision", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for CreateObject {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.resource.is_some() {
            len += 1;
        }
        if !self.name.is_empty() {
            len += 1;
        }
        if !self.manifest.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.CreateObject", len)?;
        if let Some(v) = self.resource.as_ref() {
            struct_ser.serialize_field("resource", v)?;
        }
        if !self.name.is_empty() {
            struct_ser.serialize_field("name", &self.name)?;
        }
        if !self.manifest.is_empty() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("manifest", pbjson::private::base64::encode(&self.manifest).as_str())?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for CreateObject {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "resource",
            "name",
            "manifest",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Resource,
            Name,
            Manifest,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "resource" => Ok(GeneratedField::Resource),
                            "name" => Ok(GeneratedField::Name),
                            "manifest" => Ok(GeneratedField::Manifest),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = CreateObject;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.CreateObject")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<CreateObject, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut resource__ = None;
                let mut name__ = None;
                let mut manifest__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Resource => {
                            if resource__.is_some() {
                                return Err(serde::de::Error::duplicate_field("resource"));
                            }
                            resource__ = map_.next_value()?;
                        }
                        GeneratedField::Name => {
                            if name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("name"));
                            }
                            name__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Manifest => {
                            if manifest__.is_some() {
                                return Err(serde::de::Error::duplicate_field("manifest"));
                            }
                            manifest__ = 
                                Some(map_.next_value::<::pbjson::private::BytesDeserialize<_>>()?.0)
                            ;
                        }
                    }
                }
                Ok(CreateObject {
                    resource: resource__,
                    name: name__.unwrap_or_default(),
                    manifest: manifest__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.CreateObject", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for CreatePod {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.pod_name.is_empty() {
            len += 1;
        }
        if !self.node_name.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.CreatePod", len)?;
        if !self.pod_name.is_empty() {
            struct_ser.serialize_field("podName", &self.pod_name)?;
        }
        if !self.node_name.is_empty() {
            struct_ser.serialize_field("nodeName", &self.node_name)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for CreatePod {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "pod_name",
            "podName",
            "node_name",
            "nodeName",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            PodName,
            NodeName,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "podName" | "pod_name" => Ok(GeneratedField::PodName),
                            "nodeName" | "node_name" => Ok(GeneratedField::NodeName),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = CreatePod;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.CreatePod")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<CreatePod, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut pod_name__ = None;
                let mut node_name__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::PodName => {
                            if pod_name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("podName"));
                            }
                            pod_name__ = Some(map_.next_value()?);
                        }
                        GeneratedField::NodeName => {
                            if node_name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("nodeName"));
                            }
                            node_name__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(CreatePod {
                    pod_name: pod_name__.unwrap_or_default(),
                    node_name: node_name__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.CreatePod", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for CreateRevision {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.name.is_empty() {
            len += 1;
        }
        if !self.manifest.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.CreateRevision", len)?;
        if !self.name.is_empty() {
            struct_ser.serialize_field("name", &self.name)?;
        }
        if !self.manifest.is_empty() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("manifest", pbjson::private::base64::encode(&self.manifest).as_str())?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for CreateRevision {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "name",
            "manifest",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Name,
            Manifest,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "name" => Ok(GeneratedField::Name),
                            "manifest" => Ok(GeneratedField::Manifest),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = CreateRevision;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.CreateRevision")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<CreateRevision, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut name__ = None;
                let mut manifest__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Name => {
                            if name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("name"));
                            }
                            name__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Manifest => {
                            if manifest__.is_some() {
                                return Err(serde::de::Error::duplicate_field("manifest"));
                            }
                            manifest__ = 
                                Some(map_.next_value::<::pbjson::private::BytesDeserialize<_>>()?.0)
                            ;
                        }
                    }
                }
                Ok(CreateRevision {
                    name: name__.unwrap_or_default(),
                    manifest: manifest__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.CreateRevision", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for DaemonSet {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.object.is_empty() {
            len += 1;
        }
        if !self.rollout_policies.is_empty() {
            len += 1;
        }
        if !self.measurements.is_empty() {
            len += 1;
        }
        if !self.analysis_hosts.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.DaemonSet", len)?;
        if !self.object.is_empty() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("object", pbjson::private::base64::encode(&self.object).as_str())?;
        }
        if !self.rollout_policies.is_empty() {
            struct_ser.serialize_field("rolloutPolicies", &self.rollout_policies)?;
        }
        if !self.measurements.is_empty() {
            struct_ser.serialize_field("measurements", &self.measurements)?;
        }
        if !self.analysis_hosts.is_empty() {
            struct_ser.serialize_field("analysisHosts", &self.analysis_hosts)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for DaemonSet {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "object",
            "rollout_policies",
            "rolloutPolicies",
            "measurements",
            "analysis_hosts",
            "analysisHosts",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Object,
            RolloutPolicies,
            Measurements,
            AnalysisHosts,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "object" => Ok(GeneratedField::Object),
                            "rolloutPolicies" | "rollout_policies" => Ok(GeneratedField::RolloutPolicies),
                            "measurements" => Ok(GeneratedField::Measurements),
                            "analysisHosts" | "analysis_hosts" => Ok(GeneratedField::AnalysisHosts),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = DaemonSet;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.DaemonSet")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<DaemonSet, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut object__ = None;
                let mut rollout_policies__ = None;
                let mut measurements__ = None;
                let mut analysis_hosts__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Object => {
                            if object__.is_some() {
                                return Err(serde::de::Error::duplicate_field("object"));
                            }
                            object__ = 
                                Some(map_.next_value::<::pbjson::private::BytesDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::RolloutPolicies => {
                            if rollout_policies__.is_some() {
                                return Err(serde::de::Error::duplicate_field("rolloutPolicies"));
                            }
                            rollout_policies__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Measurements => {
                            if measurements__.is_some() {
                                return Err(serde::de::Error::duplicate_field("measurements"));
                            }
                            measurements__ = Some(map_.next_value()?);
                        }
                        GeneratedField::AnalysisHosts => {
                            if analysis_hosts__.is_some() {
                                return Err(serde::de::Error::duplicate_field("analysisHosts"));
                            }
                            analysis_hosts__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(DaemonSet {
                    object: object__.unwrap_or_default(),
                    rollout_policies: rollout_policies__.unwrap_or_default(),
                    measurements: measurements__.unwrap_or_default(),
                    analysis_hosts: analysis_hosts__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.DaemonSet", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for DaemonSetDecision {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.daemon_set != 0 {
            len += 1;
        }
        if self.runs {
            len += 1;
        }
        if self.rule != 0 {
            len += 1;
        }
        if !self.message.is_empty() {
            len += 1;
        }
        if !self.missing_labels.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.DaemonSetDecision", len)?;
        if self.daemon_set != 0 {
            struct_ser.serialize_field("daemonSet", &self.daemon_set)?;
        }
        if self.runs {
            struct_ser.serialize_field("runs", &self.runs)?;
        }
        if self.rule != 0 {
            let v = Rule::try_from(self.rule)
                .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", self.rule)))?;
            struct_ser.serialize_field("rule", &v)?;
        }
        if !self.message.is_empty() {
            struct_ser.serialize_field("message", &self.message)?;
        }
        if !self.missing_labels.is_empty() {
            struct_ser.serialize_field("missingLabels", &self.missing_labels)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for DaemonSetDecision {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "daemon_set",
            "daemonSet",
            "runs",
            "rule",
            "message",
            "missing_labels",
            "missingLabels",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            DaemonSet,
            Runs,
            Rule,
            Message,
            MissingLabels,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "daemonSet" | "daemon_set" => Ok(GeneratedField::DaemonSet),
                            "runs" => Ok(GeneratedField::Runs),
                            "rule" => Ok(GeneratedField::Rule),
                            "message" => Ok(GeneratedField::Message),
                            "missingLabels" | "missing_labels" => Ok(GeneratedField::MissingLabels),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = DaemonSetDecision;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.DaemonSetDecision")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<DaemonSetDecision, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut daemon_set__ = None;
                let mut runs__ = None;
                let mut rule__ = None;
                let mut message__ = None;
                let mut missing_labels__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::DaemonSet => {
                            if daemon_set__.is_some() {
                                return Err(serde::de::Error::duplicate_field("daemonSet"));
                            }
                            daemon_set__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Runs => {
                            if runs__.is_some() {
                                return Err(serde::de::Error::duplicate_field("runs"));
                            }
                            runs__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Rule => {
                            if rule__.is_some() {
                                return Err(serde::de::Error::duplicate_field("rule"));
                            }
                            rule__ = Some(map_.next_value::<Rule>()? as i32);
                        }
                        GeneratedField::Message => {
                            if message__.is_some() {
                                return Err(serde::de::Error::duplicate_field("message"));
                            }
                            message__ = Some(map_.next_value()?);
                        }
                        GeneratedField::MissingLabels => {
                            if missing_labels__.is_some() {
                                return Err(serde::de::Error::duplicate_field("missingLabels"));
                            }
                            missing_labels__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(DaemonSetDecision {
                    daemon_set: daemon_set__.unwrap_or_default(),
                    runs: runs__.unwrap_or_default(),
                    rule: rule__.unwrap_or_default(),
                    message: message__.unwrap_or_default(),
                    missing_labels: missing_labels__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.DaemonSetDecision", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for DaemonSetOverhead {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.namespace.is_empty() {
            len += 1;
        }
        if !self.name.is_empty() {
            len += 1;
        }
        if !self.requests.is_empty() {
            len += 1;
        }
        if !self.error.is_empty() {
            len += 1;
        }
        if !self.notes.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.DaemonSetOverhead", len)?;
        if !self.namespace.is_empty() {
            struct_ser.serialize_field("namespace", &self.namespace)?;
        }
        if !self.name.is_empty() {
            struct_ser.serialize_field("name", &self.name)?;
        }
        if !self.requests.is_empty() {
            struct_ser.serialize_field("requests", &self.requests)?;
        }
        if !self.error.is_empty() {
            struct_ser.serialize_field("error", &self.error)?;
        }
        if !self.notes.is_empty() {
            struct_ser.serialize_field("notes", &self.notes)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for DaemonSetOverhead {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "namespace",
            "name",
            "requests",
            "error",
            "notes",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Namespace,
            Name,
            Requests,
            Error,
            Notes,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "namespace" => Ok(GeneratedField::Namespace),
                            "name" => Ok(GeneratedField::Name),
                            "requests" => Ok(GeneratedField::Requests),
                            "error" => Ok(GeneratedField::Error),
                            "notes" => Ok(GeneratedField::Notes),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = DaemonSetOverhead;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.DaemonSetOverhead")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<DaemonSetOverhead, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut namespace__ = None;
                let mut name__ = None;
                let mut requests__ = None;
                let mut error__ = None;
                let mut notes__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Namespace => {
                            if namespace__.is_some() {
                                return Err(serde::de::Error::duplicate_field("namespace"));
                            }
                            namespace__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Name => {
                            if name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("name"));
                            }
                            name__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Requests => {
                            if requests__.is_some() {
                                return Err(serde::de::Error::duplicate_field("requests"));
                            }
                            requests__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Error => {
                            if error__.is_some() {
                                return Err(serde::de::Error::duplicate_field("error"));
                            }
                            error__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Notes => {
                            if notes__.is_some() {
                                return Err(serde::de::Error::duplicate_field("notes"));
                            }
                            notes__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(DaemonSetOverhead {
                    namespace: namespace__.unwrap_or_default(),
                    name: name__.unwrap_or_default(),
                    requests: requests__.unwrap_or_default(),
                    error: error__.unwrap_or_default(),
                    notes: notes__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.DaemonSetOverhead", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for DaemonSetStatus {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.current_number_scheduled != 0 {
            len += 1;
        }
        if self.number_misscheduled != 0 {
            len += 1;
        }
        if self.desired_number_scheduled != 0 {
            len += 1;
        }
        if self.number_ready != 0 {
            len += 1;
        }
        if self.updated_number_scheduled != 0 {
            len += 1;
        }
        if self.number_available != 0 {
            len += 1;
        }
        if self.number_unavailable != 0 {
            len += 1;
        }
        if self.observed_generation != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.DaemonSetStatus", len)?;
        if self.current_number_scheduled != 0 {
            struct_ser.serialize_field("currentNumberScheduled", &self.current_number_scheduled)?;
        }
        if self.number_misscheduled != 0 {
            struct_ser.serialize_field("numberMisscheduled", &self.number_misscheduled)?;
        }
        if self.desired_number_scheduled != 0 {
            struct_ser.serialize_field("desiredNumberScheduled", &self.desired_number_scheduled)?;
        }
        if self.number_ready != 0 {
            struct_ser.serialize_field("numberReady", &self.number_ready)?;
        }
        if self.updated_number_scheduled != 0 {
            struct_ser.serialize_field("updatedNumberScheduled", &self.updated_number_scheduled)?;
        }
        if self.number_available != 0 {
            struct_ser.serialize_field("numberAvailable", &self.number_available)?;
        }
        if self.number_unavailable != 0 {
            struct_ser.serialize_field("numberUnavailable", &self.number_unavailable)?;
        }
        if self.observed_generation != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("observedGeneration", ToString::to_string(&self.observed_generation).as_str())?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for DaemonSetStatus {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "current_number_scheduled",
            "currentNumberScheduled",
            "number_misscheduled",
            "numberMisscheduled",
            "desired_number_scheduled",
            "desiredNumberScheduled",
            "number_ready",
            "numberReady",
            "updated_number_scheduled",
            "updatedNumberScheduled",
            "number_available",
            "numberAvailable",
            "number_unavailable",
            "numberUnavailable",
            "observed_generation",
            "observedGeneration",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            CurrentNumberScheduled,
            NumberMisscheduled,
            DesiredNumberScheduled,
            NumberReady,
            UpdatedNumberScheduled,
            NumberAvailable,
            NumberUnavailable,
            ObservedGeneration,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "currentNumberScheduled" | "current_number_scheduled" => Ok(GeneratedField::CurrentNumberScheduled),
                            "numberMisscheduled" | "number_misscheduled" => Ok(GeneratedField::NumberMisscheduled),
                            "desiredNumberScheduled" | "desired_number_scheduled" => Ok(GeneratedField::DesiredNumberScheduled),
                            "numberReady" | "number_ready" => Ok(GeneratedField::NumberReady),
                            "updatedNumberScheduled" | "updated_number_scheduled" => Ok(GeneratedField::UpdatedNumberScheduled),
                            "numberAvailable" | "number_available" => Ok(GeneratedField::NumberAvailable),
                            "numberUnavailable" | "number_unavailable" => Ok(GeneratedField::NumberUnavailable),
                            "observedGeneration" | "observed_generation" => Ok(GeneratedField::ObservedGeneration),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = DaemonSetStatus;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.DaemonSetStatus")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<DaemonSetStatus, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut current_number_scheduled__ = None;
                let mut number_misscheduled__ = None;
                let mut desired_number_scheduled__ = None;
                let mut number_ready__ = None;
                let mut updated_number_scheduled__ = None;
                let mut number_available__ = None;
                let mut number_unavailable__ = None;
                let mut observed_generation__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::CurrentNumberScheduled => {
                            if current_number_scheduled__.is_some() {
                                return Err(serde::de::Error::duplicate_field("currentNumberScheduled"));
                            }
                            current_number_scheduled__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::NumberMisscheduled => {
                            if number_misscheduled__.is_some() {
                                return Err(serde::de::Error::duplicate_field("numberMisscheduled"));
                            }
                            number_misscheduled__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::DesiredNumberScheduled => {
                            if desired_number_scheduled__.is_some() {
                                return Err(serde::de::Error::duplicate_field("desiredNumberScheduled"));
                            }
                            desired_number_scheduled__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::NumberReady => {
                            if number_ready__.is_some() {
                                return Err(serde::de::Error::duplicate_field("numberReady"));
                            }
                            number_ready__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::UpdatedNumberScheduled => {
                            if updated_number_scheduled__.is_some() {
                                return Err(serde::de::Error::duplicate_field("updatedNumberScheduled"));
                            }
                            updated_number_scheduled__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::NumberAvailable => {
                            if number_available__.is_some() {
                                return Err(serde::de::Error::duplicate_field("numberAvailable"));
                            }
                            number_available__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::NumberUnavailable => {
                            if number_unavailable__.is_some() {
                                return Err(serde::de::Error::duplicate_field("numberUnavailable"));
                            }
                            number_unavailable__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::ObservedGeneration => {
                            if observed_generation__.is_some() {
                                return Err(serde::de::Error::duplicate_field("observedGeneration"));
                            }
                            observed_generation__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                    }
                }
                Ok(DaemonSetStatus {
                    current_number_scheduled: current_number_scheduled__.unwrap_or_default(),
                    number_misscheduled: number_misscheduled__.unwrap_or_default(),
                    desired_number_scheduled: desired_number_scheduled__.unwrap_or_default(),
                    number_ready: number_ready__.unwrap_or_default(),
                    updated_number_scheduled: updated_number_scheduled__.unwrap_or_default(),
                    number_available: number_available__.unwrap_or_default(),
                    number_unavailable: number_unavailable__.unwrap_or_default(),
                    observed_generation: observed_generation__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.DaemonSetStatus", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for DeleteObject {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.resource.is_some() {
            len += 1;
        }
        if self.object.is_some() {
            len += 1;
        }
        if !self.resource_version.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.DeleteObject", len)?;
        if let Some(v) = self.resource.as_ref() {
            struct_ser.serialize_field("resource", v)?;
        }
        if let Some(v) = self.object.as_ref() {
            struct_ser.serialize_field("object", v)?;
        }
        if !self.resource_version.is_empty() {
            struct_ser.serialize_field("resourceVersion", &self.resource_version)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for DeleteObject {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "resource",
            "object",
            "resource_version",
            "resourceVersion",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Resource,
            Object,
            ResourceVersion,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "resource" => Ok(GeneratedField::Resource),
                            "object" => Ok(GeneratedField::Object),
                            "resourceVersion" | "resource_version" => Ok(GeneratedField::ResourceVersion),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = DeleteObject;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.DeleteObject")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<DeleteObject, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut resource__ = None;
                let mut object__ = None;
                let mut resource_version__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Resource => {
                            if resource__.is_some() {
                                return Err(serde::de::Error::duplicate_field("resource"));
                            }
                            resource__ = map_.next_value()?;
                        }
                        GeneratedField::Object => {
                            if object__.is_some() {
                                return Err(serde::de::Error::duplicate_field("object"));
                            }
                            object__ = map_.next_value()?;
                        }
                        GeneratedField::ResourceVersion => {
                            if resource_version__.is_some() {
                                return Err(serde::de::Error::duplicate_field("resourceVersion"));
                            }
                            resource_version__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(DeleteObject {
                    resource: resource__,
                    object: object__,
                    resource_version: resource_version__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.DeleteObject", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for DeletePod {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.pod.is_some() {
            len += 1;
        }
        if !self.node_name.is_empty() {
            len += 1;
        }
        if self.uid_precondition {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.DeletePod", len)?;
        if let Some(v) = self.pod.as_ref() {
            struct_ser.serialize_field("pod", v)?;
        }
        if !self.node_name.is_empty() {
            struct_ser.serialize_field("nodeName", &self.node_name)?;
        }
        if self.uid_precondition {
            struct_ser.serialize_field("uidPrecondition", &self.uid_precondition)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for DeletePod {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "pod",
            "node_name",
            "nodeName",
            "uid_precondition",
            "uidPrecondition",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Pod,
            NodeName,
            UidPrecondition,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "pod" => Ok(GeneratedField::Pod),
                            "nodeName" | "node_name" => Ok(GeneratedField::NodeName),
                            "uidPrecondition" | "uid_precondition" => Ok(GeneratedField::UidPrecondition),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = DeletePod;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.DeletePod")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<DeletePod, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut pod__ = None;
                let mut node_name__ = None;
                let mut uid_precondition__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Pod => {
                            if pod__.is_some() {
                                return Err(serde::de::Error::duplicate_field("pod"));
                            }
                            pod__ = map_.next_value()?;
                        }
                        GeneratedField::NodeName => {
                            if node_name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("nodeName"));
                            }
                            node_name__ = Some(map_.next_value()?);
                        }
                        GeneratedField::UidPrecondition => {
                            if uid_precondition__.is_some() {
                                return Err(serde::de::Error::duplicate_field("uidPrecondition"));
                            }
                            uid_precondition__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(DeletePod {
                    pod: pod__,
                    node_name: node_name__.unwrap_or_default(),
                    uid_precondition: uid_precondition__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.DeletePod", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for DeleteRevision {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.revision.is_some() {
            len += 1;
        }
        if self.revision_number != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.DeleteRevision", len)?;
        if let Some(v) = self.revision.as_ref() {
            struct_ser.serialize_field("revision", v)?;
        }
        if self.revision_number != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("revisionNumber", ToString::to_string(&self.revision_number).as_str())?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for DeleteRevision {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "revision",
            "revision_number",
            "revisionNumber",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Revision,
            RevisionNumber,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "revision" => Ok(GeneratedField::Revision),
                            "revisionNumber" | "revision_number" => Ok(GeneratedField::RevisionNumber),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = DeleteRevision;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.DeleteRevision")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<DeleteRevision, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut revision__ = None;
                let mut revision_number__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Revision => {
                            if revision__.is_some() {
                                return Err(serde::de::Error::duplicate_field("revision"));
                            }
                            revision__ = map_.next_value()?;
                        }
                        GeneratedField::RevisionNumber => {
                            if revision_number__.is_some() {
                                return Err(serde::de::Error::duplicate_field("revisionNumber"));
                            }
                            revision_number__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                    }
                }
                Ok(DeleteRevision {
                    revision: revision__,
                    revision_number: revision_number__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.DeleteRevision", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Deployment {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.object.is_empty() {
            len += 1;
        }
        if !self.replica_sets.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.Deployment", len)?;
        if !self.object.is_empty() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("object", pbjson::private::base64::encode(&self.object).as_str())?;
        }
        if !self.replica_sets.is_empty() {
            struct_ser.serialize_field("replicaSets", &self.replica_sets)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Deployment {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "object",
            "replica_sets",
            "replicaSets",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Object,
            ReplicaSets,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "object" => Ok(GeneratedField::Object),
                            "replicaSets" | "replica_sets" => Ok(GeneratedField::ReplicaSets),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Deployment;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.Deployment")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Deployment, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut object__ = None;
                let mut replica_sets__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Object => {
                            if object__.is_some() {
                                return Err(serde::de::Error::duplicate_field("object"));
                            }
                            object__ = 
                                Some(map_.next_value::<::pbjson::private::BytesDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::ReplicaSets => {
                            if replica_sets__.is_some() {
                                return Err(serde::de::Error::duplicate_field("replicaSets"));
                            }
                            replica_sets__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(Deployment {
                    object: object__.unwrap_or_default(),
                    replica_sets: replica_sets__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.Deployment", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for DeploymentReplicaSet {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.object.is_empty() {
            len += 1;
        }
        if self.unfinished_pods != 0 {
            len += 1;
        }
        if self.read_after_name_collision {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.DeploymentReplicaSet", len)?;
        if !self.object.is_empty() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("object", pbjson::private::base64::encode(&self.object).as_str())?;
        }
        if self.unfinished_pods != 0 {
            struct_ser.serialize_field("unfinishedPods", &self.unfinished_pods)?;
        }
        if self.read_after_name_collision {
            struct_ser.serialize_field("readAfterNameCollision", &self.read_after_name_collision)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for DeploymentReplicaSet {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "object",
            "unfinished_pods",
            "unfinishedPods",
            "read_after_name_collision",
            "readAfterNameCollision",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Object,
            UnfinishedPods,
            ReadAfterNameCollision,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "object" => Ok(GeneratedField::Object),
                            "unfinishedPods" | "unfinished_pods" => Ok(GeneratedField::UnfinishedPods),
                            "readAfterNameCollision" | "read_after_name_collision" => Ok(GeneratedField::ReadAfterNameCollision),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = DeploymentReplicaSet;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.DeploymentReplicaSet")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<DeploymentReplicaSet, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut object__ = None;
                let mut unfinished_pods__ = None;
                let mut read_after_name_collision__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Object => {
                            if object__.is_some() {
                                return Err(serde::de::Error::duplicate_field("object"));
                            }
                            object__ = 
                                Some(map_.next_value::<::pbjson::private::BytesDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::UnfinishedPods => {
                            if unfinished_pods__.is_some() {
                                return Err(serde::de::Error::duplicate_field("unfinishedPods"));
                            }
                            unfinished_pods__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::ReadAfterNameCollision => {
                            if read_after_name_collision__.is_some() {
                                return Err(serde::de::Error::duplicate_field("readAfterNameCollision"));
                            }
                            read_after_name_collision__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(DeploymentReplicaSet {
                    object: object__.unwrap_or_default(),
                    unfinished_pods: unfinished_pods__.unwrap_or_default(),
                    read_after_name_collision: read_after_name_collision__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.DeploymentReplicaSet", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for DeploymentStatus {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.replicas != 0 {
            len += 1;
        }
        if self.updated_replicas != 0 {
            len += 1;
        }
        if self.ready_replicas != 0 {
            len += 1;
        }
        if self.available_replicas != 0 {
            len += 1;
        }
        if self.unavailable_replicas != 0 {
            len += 1;
        }
        if self.terminating_replicas.is_some() {
            len += 1;
        }
        if self.collision_count.is_some() {
            len += 1;
        }
        if self.observed_generation != 0 {
            len += 1;
        }
        if !self.conditions.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.DeploymentStatus", len)?;
        if self.replicas != 0 {
            struct_ser.serialize_field("replicas", &self.replicas)?;
        }
        if self.updated_replicas != 0 {
            struct_ser.serialize_field("updatedReplicas", &self.updated_replicas)?;
        }
        if self.ready_replicas != 0 {
            struct_ser.serialize_field("readyReplicas", &self.ready_replicas)?;
        }
        if self.available_replicas != 0 {
            struct_ser.serialize_field("availableReplicas", &self.available_replicas)?;
        }
        if self.unavailable_replicas != 0 {
            struct_ser.serialize_field("unavailableReplicas", &self.unavailable_replicas)?;
        }
        if let Some(v) = self.terminating_replicas.as_ref() {
            struct_ser.serialize_field("terminatingReplicas", v)?;
        }
        if let Some(v) = self.collision_count.as_ref() {
            struct_ser.serialize_field("collisionCount", v)?;
        }
        if self.observed_generation != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("observedGeneration", ToString::to_string(&self.observed_generation).as_str())?;
        }
        if !self.conditions.is_empty() {
            struct_ser.serialize_field("conditions", &self.conditions)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for DeploymentStatus {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "replicas",
            "updated_replicas",
            "updatedReplicas",
            "ready_replicas",
            "readyReplicas",
            "available_replicas",
            "availableReplicas",
            "unavailable_replicas",
            "unavailableReplicas",
            "terminating_replicas",
            "terminatingReplicas",
            "collision_count",
            "collisionCount",
            "observed_generation",
            "observedGeneration",
            "conditions",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Replicas,
            UpdatedReplicas,
            ReadyReplicas,
            AvailableReplicas,
            UnavailableReplicas,
            TerminatingReplicas,
            CollisionCount,
            ObservedGeneration,
            Conditions,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "replicas" => Ok(GeneratedField::Replicas),
                            "updatedReplicas" | "updated_replicas" => Ok(GeneratedField::UpdatedReplicas),
                            "readyReplicas" | "ready_replicas" => Ok(GeneratedField::ReadyReplicas),
                            "availableReplicas" | "available_replicas" => Ok(GeneratedField::AvailableReplicas),
                            "unavailableReplicas" | "unavailable_replicas" => Ok(GeneratedField::UnavailableReplicas),
                            "terminatingReplicas" | "terminating_replicas" => Ok(GeneratedField::TerminatingReplicas),
                            "collisionCount" | "collision_count" => Ok(GeneratedField::CollisionCount),
                            "observedGeneration" | "observed_generation" => Ok(GeneratedField::ObservedGeneration),
                            "conditions" => Ok(GeneratedField::Conditions),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = DeploymentStatus;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.DeploymentStatus")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<DeploymentStatus, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut replicas__ = None;
                let mut updated_replicas__ = None;
                let mut ready_replicas__ = None;
                let mut available_replicas__ = None;
                let mut unavailable_replicas__ = None;
                let mut terminating_replicas__ = None;
                let mut collision_count__ = None;
                let mut observed_generation__ = None;
                let mut conditions__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Replicas => {
                            if replicas__.is_some() {
                                return Err(serde::de::Error::duplicate_field("replicas"));
                            }
                            replicas__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::UpdatedReplicas => {
                            if updated_replicas__.is_some() {
                                return Err(serde::de::Error::duplicate_field("updatedReplicas"));
                            }
                            updated_replicas__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::ReadyReplicas => {
                            if ready_replicas__.is_some() {
                                return Err(serde::de::Error::duplicate_field("readyReplicas"));
                            }
                            ready_replicas__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::AvailableReplicas => {
                            if available_replicas__.is_some() {
                                return Err(serde::de::Error::duplicate_field("availableReplicas"));
                            }
                            available_replicas__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::UnavailableReplicas => {
                            if unavailable_replicas__.is_some() {
                                return Err(serde::de::Error::duplicate_field("unavailableReplicas"));
                            }
                            unavailable_replicas__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::TerminatingReplicas => {
                            if terminating_replicas__.is_some() {
                                return Err(serde::de::Error::duplicate_field("terminatingReplicas"));
                            }
                            terminating_replicas__ = 
                                map_.next_value::<::std::option::Option<::pbjson::private::NumberDeserialize<_>>>()?.map(|x| x.0)
                            ;
                        }
                        GeneratedField::CollisionCount => {
                            if collision_count__.is_some() {
                                return Err(serde::de::Error::duplicate_field("collisionCount"));
                            }
                            collision_count__ = 
                                map_.next_value::<::std::option::Option<::pbjson::private::NumberDeserialize<_>>>()?.map(|x| x.0)
                            ;
                        }
                        GeneratedField::ObservedGeneration => {
                            if observed_generation__.is_some() {
                                return Err(serde::de::Error::duplicate_field("observedGeneration"));
                            }
                            observed_generation__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Conditions => {
                            if conditions__.is_some() {
                                return Err(serde::de::Error::duplicate_field("conditions"));
                            }
                            conditions__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(DeploymentStatus {
                    replicas: replicas__.unwrap_or_default(),
                    updated_replicas: updated_replicas__.unwrap_or_default(),
                    ready_replicas: ready_replicas__.unwrap_or_default(),
                    available_replicas: available_replicas__.unwrap_or_default(),
                    unavailable_replicas: unavailable_replicas__.unwrap_or_default(),
                    terminating_replicas: terminating_replicas__,
                    collision_count: collision_count__,
                    observed_generation: observed_generation__.unwrap_or_default(),
                    conditions: conditions__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.DeploymentStatus", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Deviation {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        let variant = match self {
            Self::Unspecified => "DEVIATION_UNSPECIFIED",
            Self::IdempotentCreates => "DEVIATION_IDEMPOTENT_CREATES",
            Self::ClearReplacedOwnWrites => "DEVIATION_CLEAR_REPLACED_OWN_WRITES",
            Self::RelabelDuplicatesOnly => "DEVIATION_RELABEL_DUPLICATES_ONLY",
            Self::DeletionsByUid => "DEVIATION_DELETIONS_BY_UID",
            Self::SkipDeletingOnMissingNodes => "DEVIATION_SKIP_DELETING_ON_MISSING_NODES",
            Self::SurgeIgnoresMissingNodes => "DEVIATION_SURGE_IGNORES_MISSING_NODES",
            Self::SurgeHonoursBackoff => "DEVIATION_SURGE_HONOURS_BACKOFF",
            Self::DecideAfterCut => "DEVIATION_DECIDE_AFTER_CUT",
            Self::ShortenRevisionNames => "DEVIATION_SHORTEN_REVISION_NAMES",
            Self::DeleteWithUid => "DEVIATION_DELETE_WITH_UID",
            Self::EmptySelectorByMeaning => "DEVIATION_EMPTY_SELECTOR_BY_MEANING",
            Self::EarliestRequeue => "DEVIATION_EARLIEST_REQUEUE",
            Self::WakeOnNodeDelete => "DEVIATION_WAKE_ON_NODE_DELETE",
            Self::LowerOnNamespaceTerminating => "DEVIATION_LOWER_ON_NAMESPACE_TERMINATING",
            Self::SkipEqualStatusWrites => "DEVIATION_SKIP_EQUAL_STATUS_WRITES",
            Self::StatusWithUid => "DEVIATION_STATUS_WITH_UID",
            Self::SlowStartAcrossPlans => "DEVIATION_SLOW_START_ACROSS_PLANS",
            Self::RefreshDesiredReplicas => "DEVIATION_REFRESH_DESIRED_REPLICAS",
            Self::ReleasedSetIsCollision => "DEVIATION_RELEASED_SET_IS_COLLISION",
            Self::WideProportions => "DEVIATION_WIDE_PROPORTIONS",
            Self::NoHotRequeue => "DEVIATION_NO_HOT_REQUEUE",
            Self::RetryOldSetScaling => "DEVIATION_RETRY_OLD_SET_SCALING",
            Self::ConfirmBeforeCreates => "DEVIATION_CONFIRM_BEFORE_CREATES",
        };
        serializer.serialize_str(variant)
    }
}
impl<'de> serde::Deserialize<'de> for Deviation {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "DEVIATION_UNSPECIFIED",
            "DEVIATION_IDEMPOTENT_CREATES",
            "DEVIATION_CLEAR_REPLACED_OWN_WRITES",
            "DEVIATION_RELABEL_DUPLICATES_ONLY",
            "DEVIATION_DELETIONS_BY_UID",
            "DEVIATION_SKIP_DELETING_ON_MISSING_NODES",
            "DEVIATION_SURGE_IGNORES_MISSING_NODES",
            "DEVIATION_SURGE_HONOURS_BACKOFF",
            "DEVIATION_DECIDE_AFTER_CUT",
            "DEVIATION_SHORTEN_REVISION_NAMES",
            "DEVIATION_DELETE_WITH_UID",
            "DEVIATION_EMPTY_SELECTOR_BY_MEANING",
            "DEVIATION_EARLIEST_REQUEUE",
            "DEVIATION_WAKE_ON_NODE_DELETE",
            "DEVIATION_LOWER_ON_NAMESPACE_TERMINATING",
            "DEVIATION_SKIP_EQUAL_STATUS_WRITES",
            "DEVIATION_STATUS_WITH_UID",
            "DEVIATION_SLOW_START_ACROSS_PLANS",
            "DEVIATION_REFRESH_DESIRED_REPLICAS",
            "DEVIATION_RELEASED_SET_IS_COLLISION",
            "DEVIATION_WIDE_PROPORTIONS",
            "DEVIATION_NO_HOT_REQUEUE",
            "DEVIATION_RETRY_OLD_SET_SCALING",
            "DEVIATION_CONFIRM_BEFORE_CREATES",
        ];

        struct GeneratedVisitor;

        impl serde::de::Visitor<'_> for GeneratedVisitor {
            type Value = Deviation;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(formatter, "expected one of: {:?}", &FIELDS)
            }

            fn visit_i64<E>(self, v: i64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Signed(v), &self)
                    })
            }

            fn visit_u64<E>(self, v: u64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Unsigned(v), &self)
                    })
            }

            fn visit_str<E>(self, value: &str) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                match value {
                    "DEVIATION_UNSPECIFIED" => Ok(Deviation::Unspecified),
                    "DEVIATION_IDEMPOTENT_CREATES" => Ok(Deviation::IdempotentCreates),
                    "DEVIATION_CLEAR_REPLACED_OWN_WRITES" => Ok(Deviation::ClearReplacedOwnWrites),
                    "DEVIATION_RELABEL_DUPLICATES_ONLY" => Ok(Deviation::RelabelDuplicatesOnly),
                    "DEVIATION_DELETIONS_BY_UID" => Ok(Deviation::DeletionsByUid),
                    "DEVIATION_SKIP_DELETING_ON_MISSING_NODES" => Ok(Deviation::SkipDeletingOnMissingNodes),
                    "DEVIATION_SURGE_IGNORES_MISSING_NODES" => Ok(Deviation::SurgeIgnoresMissingNodes),
                    "DEVIATION_SURGE_HONOURS_BACKOFF" => Ok(Deviation::SurgeHonoursBackoff),
                    "DEVIATION_DECIDE_AFTER_CUT" => Ok(Deviation::DecideAfterCut),
                    "DEVIATION_SHORTEN_REVISION_NAMES" => Ok(Deviation::ShortenRevisionNames),
                    "DEVIATION_DELETE_WITH_UID" => Ok(Deviation::DeleteWithUid),
                    "DEVIATION_EMPTY_SELECTOR_BY_MEANING" => Ok(Deviation::EmptySelectorByMeaning),
                    "DEVIATION_EARLIEST_REQUEUE" => Ok(Deviation::EarliestRequeue),
                    "DEVIATION_WAKE_ON_NODE_DELETE" => Ok(Deviation::WakeOnNodeDelete),
                    "DEVIATION_LOWER_ON_NAMESPACE_TERMINATING" => Ok(Deviation::LowerOnNamespaceTerminating),
                    "DEVIATION_SKIP_EQUAL_STATUS_WRITES" => Ok(Deviation::SkipEqualStatusWrites),
                    "DEVIATION_STATUS_WITH_UID" => Ok(Deviation::StatusWithUid),
                    "DEVIATION_SLOW_START_ACROSS_PLANS" => Ok(Deviation::SlowStartAcrossPlans),
                    "DEVIATION_REFRESH_DESIRED_REPLICAS" => Ok(Deviation::RefreshDesiredReplicas),
                    "DEVIATION_RELEASED_SET_IS_COLLISION" => Ok(Deviation::ReleasedSetIsCollision),
                    "DEVIATION_WIDE_PROPORTIONS" => Ok(Deviation::WideProportions),
                    "DEVIATION_NO_HOT_REQUEUE" => Ok(Deviation::NoHotRequeue),
                    "DEVIATION_RETRY_OLD_SET_SCALING" => Ok(Deviation::RetryOldSetScaling),
                    "DEVIATION_CONFIRM_BEFORE_CREATES" => Ok(Deviation::ConfirmBeforeCreates),
                    _ => Err(serde::de::Error::unknown_variant(value, FIELDS)),
                }
            }
        }
        deserializer.deserialize_any(GeneratedVisitor)
    }
}
impl serde::Serialize for DeviationInfo {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.deviation != 0 {
            len += 1;
        }
        if self.on_by_default {
            len += 1;
        }
        if !self.description.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.DeviationInfo", len)?;
        if self.deviation != 0 {
            let v = Deviation::try_from(self.deviation)
                .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", self.deviation)))?;
            struct_ser.serialize_field("deviation", &v)?;
        }
        if self.on_by_default {
            struct_ser.serialize_field("onByDefault", &self.on_by_default)?;
        }
        if !self.description.is_empty() {
            struct_ser.serialize_field("description", &self.description)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for DeviationInfo {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "deviation",
            "on_by_default",
            "onByDefault",
            "description",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Deviation,
            OnByDefault,
            Description,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "deviation" => Ok(GeneratedField::Deviation),
                            "onByDefault" | "on_by_default" => Ok(GeneratedField::OnByDefault),
                            "description" => Ok(GeneratedField::Description),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = DeviationInfo;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.DeviationInfo")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<DeviationInfo, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut deviation__ = None;
                let mut on_by_default__ = None;
                let mut description__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Deviation => {
                            if deviation__.is_some() {
                                return Err(serde::de::Error::duplicate_field("deviation"));
                            }
                            deviation__ = Some(map_.next_value::<Deviation>()? as i32);
                        }
                        GeneratedField::OnByDefault => {
                            if on_by_default__.is_some() {
                                return Err(serde::de::Error::duplicate_field("onByDefault"));
                            }
                            on_by_default__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Description => {
                            if description__.is_some() {
                                return Err(serde::de::Error::duplicate_field("description"));
                            }
                            description__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(DeviationInfo {
                    deviation: deviation__.unwrap_or_default(),
                    on_by_default: on_by_default__.unwrap_or_default(),
                    description: description__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.DeviationInfo", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for DigestFunction {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        let variant = match self {
            Self::Unspecified => "DIGEST_FUNCTION_UNSPECIFIED",
            Self::Sha256 => "DIGEST_FUNCTION_SHA256",
        };
        serializer.serialize_str(variant)
    }
}
impl<'de> serde::Deserialize<'de> for DigestFunction {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "DIGEST_FUNCTION_UNSPECIFIED",
            "DIGEST_FUNCTION_SHA256",
        ];

        struct GeneratedVisitor;

        impl serde::de::Visitor<'_> for GeneratedVisitor {
            type Value = DigestFunction;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(formatter, "expected one of: {:?}", &FIELDS)
            }

            fn visit_i64<E>(self, v: i64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Signed(v), &self)
                    })
            }

            fn visit_u64<E>(self, v: u64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Unsigned(v), &self)
                    })
            }

            fn visit_str<E>(self, value: &str) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                match value {
                    "DIGEST_FUNCTION_UNSPECIFIED" => Ok(DigestFunction::Unspecified),
                    "DIGEST_FUNCTION_SHA256" => Ok(DigestFunction::Sha256),
                    _ => Err(serde::de::Error::unknown_variant(value, FIELDS)),
                }
            }
        }
        deserializer.deserialize_any(GeneratedVisitor)
    }
}
impl serde::Serialize for EmitEvent {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.r#type.is_empty() {
            len += 1;
        }
        if !self.reason.is_empty() {
            len += 1;
        }
        if !self.message.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.EmitEvent", len)?;
        if !self.r#type.is_empty() {
            struct_ser.serialize_field("type", &self.r#type)?;
        }
        if !self.reason.is_empty() {
            struct_ser.serialize_field("reason", &self.reason)?;
        }
        if !self.message.is_empty() {
            struct_ser.serialize_field("message", &self.message)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for EmitEvent {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "type",
            "reason",
            "message",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Type,
            Reason,
            Message,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "type" => Ok(GeneratedField::Type),
                            "reason" => Ok(GeneratedField::Reason),
                            "message" => Ok(GeneratedField::Message),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = EmitEvent;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.EmitEvent")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<EmitEvent, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut r#type__ = None;
                let mut reason__ = None;
                let mut message__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Type => {
                            if r#type__.is_some() {
                                return Err(serde::de::Error::duplicate_field("type"));
                            }
                            r#type__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Reason => {
                            if reason__.is_some() {
                                return Err(serde::de::Error::duplicate_field("reason"));
                            }
                            reason__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Message => {
                            if message__.is_some() {
                                return Err(serde::de::Error::duplicate_field("message"));
                            }
                            message__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(EmitEvent {
                    r#type: r#type__.unwrap_or_default(),
                    reason: reason__.unwrap_or_default(),
                    message: message__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.EmitEvent", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for EvaluateNodesRequest {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.nodes.is_empty() {
            len += 1;
        }
        if !self.daemon_sets.is_empty() {
            len += 1;
        }
        if !self.feature_gates.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.EvaluateNodesRequest", len)?;
        if !self.nodes.is_empty() {
            struct_ser.serialize_field("nodes", &self.nodes)?;
        }
        if !self.daemon_sets.is_empty() {
            struct_ser.serialize_field("daemonSets", &self.daemon_sets)?;
        }
        if !self.feature_gates.is_empty() {
            let v = self.feature_gates.iter().cloned().map(|v| {
                FeatureGate::try_from(v)
                    .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", v)))
                }).collect::<std::result::Result<Vec<_>, _>>()?;
            struct_ser.serialize_field("featureGates", &v)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for EvaluateNodesRequest {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "nodes",
            "daemon_sets",
            "daemonSets",
            "feature_gates",
            "featureGates",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Nodes,
            DaemonSets,
            FeatureGates,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "nodes" => Ok(GeneratedField::Nodes),
                            "daemonSets" | "daemon_sets" => Ok(GeneratedField::DaemonSets),
                            "featureGates" | "feature_gates" => Ok(GeneratedField::FeatureGates),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = EvaluateNodesRequest;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.EvaluateNodesRequest")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<EvaluateNodesRequest, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut nodes__ = None;
                let mut daemon_sets__ = None;
                let mut feature_gates__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Nodes => {
                            if nodes__.is_some() {
                                return Err(serde::de::Error::duplicate_field("nodes"));
                            }
                            nodes__ = Some(map_.next_value()?);
                        }
                        GeneratedField::DaemonSets => {
                            if daemon_sets__.is_some() {
                                return Err(serde::de::Error::duplicate_field("daemonSets"));
                            }
                            daemon_sets__ = Some(map_.next_value()?);
                        }
                        GeneratedField::FeatureGates => {
                            if feature_gates__.is_some() {
                                return Err(serde::de::Error::duplicate_field("featureGates"));
                            }
                            feature_gates__ = Some(map_.next_value::<Vec<FeatureGate>>()?.into_iter().map(|x| x as i32).collect());
                        }
                    }
                }
                Ok(EvaluateNodesRequest {
                    nodes: nodes__.unwrap_or_default(),
                    daemon_sets: daemon_sets__.unwrap_or_default(),
                    feature_gates: feature_gates__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.EvaluateNodesRequest", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for EvaluateNodesResponse {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.node_evaluations.is_empty() {
            len += 1;
        }
        if !self.evaluations.is_empty() {
            len += 1;
        }
        if !self.decisions.is_empty() {
            len += 1;
        }
        if !self.daemon_sets.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.EvaluateNodesResponse", len)?;
        if !self.node_evaluations.is_empty() {
            struct_ser.serialize_field("nodeEvaluations", &self.node_evaluations)?;
        }
        if !self.evaluations.is_empty() {
            struct_ser.serialize_field("evaluations", &self.evaluations)?;
        }
        if !self.decisions.is_empty() {
            struct_ser.serialize_field("decisions", &self.decisions)?;
        }
        if !self.daemon_sets.is_empty() {
            struct_ser.serialize_field("daemonSets", &self.daemon_sets)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for EvaluateNodesResponse {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "node_evaluations",
            "nodeEvaluations",
            "evaluations",
            "decisions",
            "daemon_sets",
            "daemonSets",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            NodeEvaluations,
            Evaluations,
            Decisions,
            DaemonSets,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "nodeEvaluations" | "node_evaluations" => Ok(GeneratedField::NodeEvaluations),
                            "evaluations" => Ok(GeneratedField::Evaluations),
                            "decisions" => Ok(GeneratedField::Decisions),
                            "daemonSets" | "daemon_sets" => Ok(GeneratedField::DaemonSets),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = EvaluateNodesResponse;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.EvaluateNodesResponse")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<EvaluateNodesResponse, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut node_evaluations__ = None;
                let mut evaluations__ = None;
                let mut decisions__ = None;
                let mut daemon_sets__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::NodeEvaluations => {
                            if node_evaluations__.is_some() {
                                return Err(serde::de::Error::duplicate_field("nodeEvaluations"));
                            }
                            node_evaluations__ = 
                                Some(map_.next_value::<Vec<::pbjson::private::NumberDeserialize<_>>>()?
                                    .into_iter().map(|x| x.0).collect())
                            ;
                        }
                        GeneratedField::Evaluations => {
                            if evaluations__.is_some() {
                                return Err(serde::de::Error::duplicate_field("evaluations"));
                            }
                            evaluations__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Decisions => {
                            if decisions__.is_some() {
                                return Err(serde::de::Error::duplicate_field("decisions"));
                            }
                            decisions__ = Some(map_.next_value()?);
                        }
                        GeneratedField::DaemonSets => {
                            if daemon_sets__.is_some() {
                                return Err(serde::de::Error::duplicate_field("daemonSets"));
                            }
                            daemon_sets__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(EvaluateNodesResponse {
                    node_evaluations: node_evaluations__.unwrap_or_default(),
                    evaluations: evaluations__.unwrap_or_default(),
                    decisions: decisions__.unwrap_or_default(),
                    daemon_sets: daemon_sets__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.EvaluateNodesResponse", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for EvictPod {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.pod.is_some() {
            len += 1;
        }
        if !self.node_name.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.EvictPod", len)?;
        if let Some(v) = self.pod.as_ref() {
            struct_ser.serialize_field("pod", v)?;
        }
        if !self.node_name.is_empty() {
            struct_ser.serialize_field("nodeName", &self.node_name)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for EvictPod {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "pod",
            "node_name",
            "nodeName",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Pod,
            NodeName,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "pod" => Ok(GeneratedField::Pod),
                            "nodeName" | "node_name" => Ok(GeneratedField::NodeName),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = EvictPod;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.EvictPod")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<EvictPod, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut pod__ = None;
                let mut node_name__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Pod => {
                            if pod__.is_some() {
                                return Err(serde::de::Error::duplicate_field("pod"));
                            }
                            pod__ = map_.next_value()?;
                        }
                        GeneratedField::NodeName => {
                            if node_name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("nodeName"));
                            }
                            node_name__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(EvictPod {
                    pod: pod__,
                    node_name: node_name__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.EvictPod", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Expectations {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.set_at.is_some() {
            len += 1;
        }
        if !self.creates.is_empty() {
            len += 1;
        }
        if !self.delete_uids.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.Expectations", len)?;
        if let Some(v) = self.set_at.as_ref() {
            struct_ser.serialize_field("setAt", v)?;
        }
        if !self.creates.is_empty() {
            struct_ser.serialize_field("creates", &self.creates)?;
        }
        if !self.delete_uids.is_empty() {
            struct_ser.serialize_field("deleteUids", &self.delete_uids)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Expectations {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "set_at",
            "setAt",
            "creates",
            "delete_uids",
            "deleteUids",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            SetAt,
            Creates,
            DeleteUids,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "setAt" | "set_at" => Ok(GeneratedField::SetAt),
                            "creates" => Ok(GeneratedField::Creates),
                            "deleteUids" | "delete_uids" => Ok(GeneratedField::DeleteUids),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Expectations;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.Expectations")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Expectations, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut set_at__ = None;
                let mut creates__ = None;
                let mut delete_uids__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::SetAt => {
                            if set_at__.is_some() {
                                return Err(serde::de::Error::duplicate_field("setAt"));
                            }
                            set_at__ = map_.next_value()?;
                        }
                        GeneratedField::Creates => {
                            if creates__.is_some() {
                                return Err(serde::de::Error::duplicate_field("creates"));
                            }
                            creates__ = Some(map_.next_value()?);
                        }
                        GeneratedField::DeleteUids => {
                            if delete_uids__.is_some() {
                                return Err(serde::de::Error::duplicate_field("deleteUids"));
                            }
                            delete_uids__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(Expectations {
                    set_at: set_at__,
                    creates: creates__.unwrap_or_default(),
                    delete_uids: delete_uids__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.Expectations", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ExpectedCreate {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.pod_name.is_empty() {
            len += 1;
        }
        if !self.node_name.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.ExpectedCreate", len)?;
        if !self.pod_name.is_empty() {
            struct_ser.serialize_field("podName", &self.pod_name)?;
        }
        if !self.node_name.is_empty() {
            struct_ser.serialize_field("nodeName", &self.node_name)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ExpectedCreate {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "pod_name",
            "podName",
            "node_name",
            "nodeName",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            PodName,
            NodeName,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "podName" | "pod_name" => Ok(GeneratedField::PodName),
                            "nodeName" | "node_name" => Ok(GeneratedField::NodeName),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ExpectedCreate;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.ExpectedCreate")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ExpectedCreate, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut pod_name__ = None;
                let mut node_name__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::PodName => {
                            if pod_name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("podName"));
                            }
                            pod_name__ = Some(map_.next_value()?);
                        }
                        GeneratedField::NodeName => {
                            if node_name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("nodeName"));
                            }
                            node_name__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(ExpectedCreate {
                    pod_name: pod_name__.unwrap_or_default(),
                    node_name: node_name__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.ExpectedCreate", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ExplainRequest {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.snapshot.is_some() {
            len += 1;
        }
        if self.options.is_some() {
            len += 1;
        }
        if !self.node_name.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.ExplainRequest", len)?;
        if let Some(v) = self.snapshot.as_ref() {
            struct_ser.serialize_field("snapshot", v)?;
        }
        if let Some(v) = self.options.as_ref() {
            struct_ser.serialize_field("options", v)?;
        }
        if !self.node_name.is_empty() {
            struct_ser.serialize_field("nodeName", &self.node_name)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ExplainRequest {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "snapshot",
            "options",
            "node_name",
            "nodeName",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Snapshot,
            Options,
            NodeName,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "snapshot" => Ok(GeneratedField::Snapshot),
                            "options" => Ok(GeneratedField::Options),
                            "nodeName" | "node_name" => Ok(GeneratedField::NodeName),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ExplainRequest;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.ExplainRequest")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ExplainRequest, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut snapshot__ = None;
                let mut options__ = None;
                let mut node_name__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Snapshot => {
                            if snapshot__.is_some() {
                                return Err(serde::de::Error::duplicate_field("snapshot"));
                            }
                            snapshot__ = map_.next_value()?;
                        }
                        GeneratedField::Options => {
                            if options__.is_some() {
                                return Err(serde::de::Error::duplicate_field("options"));
                            }
                            options__ = map_.next_value()?;
                        }
                        GeneratedField::NodeName => {
                            if node_name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("nodeName"));
                            }
                            node_name__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(ExplainRequest {
                    snapshot: snapshot__,
                    options: options__,
                    node_name: node_name__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.ExplainRequest", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ExplainResponse {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.nodes.is_empty() {
            len += 1;
        }
        if self.workload.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.ExplainResponse", len)?;
        if !self.nodes.is_empty() {
            struct_ser.serialize_field("nodes", &self.nodes)?;
        }
        if let Some(v) = self.workload.as_ref() {
            struct_ser.serialize_field("workload", v)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ExplainResponse {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "nodes",
            "workload",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Nodes,
            Workload,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "nodes" => Ok(GeneratedField::Nodes),
                            "workload" => Ok(GeneratedField::Workload),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ExplainResponse;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.ExplainResponse")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ExplainResponse, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut nodes__ = None;
                let mut workload__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Nodes => {
                            if nodes__.is_some() {
                                return Err(serde::de::Error::duplicate_field("nodes"));
                            }
                            nodes__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Workload => {
                            if workload__.is_some() {
                                return Err(serde::de::Error::duplicate_field("workload"));
                            }
                            workload__ = map_.next_value()?;
                        }
                    }
                }
                Ok(ExplainResponse {
                    nodes: nodes__.unwrap_or_default(),
                    workload: workload__,
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.ExplainResponse", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for FailedPodBackoff {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.observed_generation != 0 {
            len += 1;
        }
        if !self.node_name.is_empty() {
            len += 1;
        }
        if self.delay.is_some() {
            len += 1;
        }
        if self.last.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.FailedPodBackoff", len)?;
        if self.observed_generation != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("observedGeneration", ToString::to_string(&self.observed_generation).as_str())?;
        }
        if !self.node_name.is_empty() {
            struct_ser.serialize_field("nodeName", &self.node_name)?;
        }
        if let Some(v) = self.delay.as_ref() {
            struct_ser.serialize_field("delay", v)?;
        }
        if let Some(v) = self.last.as_ref() {
            struct_ser.serialize_field("last", v)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for FailedPodBackoff {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "observed_generation",
            "observedGeneration",
            "node_name",
            "nodeName",
            "delay",
            "last",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            ObservedGeneration,
            NodeName,
            Delay,
            Last,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "observedGeneration" | "observed_generation" => Ok(GeneratedField::ObservedGeneration),
                            "nodeName" | "node_name" => Ok(GeneratedField::NodeName),
                            "delay" => Ok(GeneratedField::Delay),
                            "last" => Ok(GeneratedField::Last),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = FailedPodBackoff;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.FailedPodBackoff")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<FailedPodBackoff, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut observed_generation__ = None;
                let mut node_name__ = None;
                let mut delay__ = None;
                let mut last__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::ObservedGeneration => {
                            if observed_generation__.is_some() {
                                return Err(serde::de::Error::duplicate_field("observedGeneration"));
                            }
                            observed_generation__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::NodeName => {
                            if node_name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("nodeName"));
                            }
                            node_name__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Delay => {
                            if delay__.is_some() {
                                return Err(serde::de::Error::duplicate_field("delay"));
                            }
                            delay__ = map_.next_value()?;
                        }
                        GeneratedField::Last => {
                            if last__.is_some() {
                                return Err(serde::de::Error::duplicate_field("last"));
                            }
                            last__ = map_.next_value()?;
                        }
                    }
                }
                Ok(FailedPodBackoff {
                    observed_generation: observed_generation__.unwrap_or_default(),
                    node_name: node_name__.unwrap_or_default(),
                    delay: delay__,
                    last: last__,
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.FailedPodBackoff", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for FeatureGate {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        let variant = match self {
            Self::Unspecified => "FEATURE_GATE_UNSPECIFIED",
            Self::TaintTolerationComparisonOperators => "FEATURE_GATE_TAINT_TOLERATION_COMPARISON_OPERATORS",
            Self::PodDeletionCost => "FEATURE_GATE_POD_DELETION_COST",
            Self::DeploymentReplicaSetTerminatingReplicas => "FEATURE_GATE_DEPLOYMENT_REPLICA_SET_TERMINATING_REPLICAS",
        };
        serializer.serialize_str(variant)
    }
}
impl<'de> serde::Deserialize<'de> for FeatureGate {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "FEATURE_GATE_UNSPECIFIED",
            "FEATURE_GATE_TAINT_TOLERATION_COMPARISON_OPERATORS",
            "FEATURE_GATE_POD_DELETION_COST",
            "FEATURE_GATE_DEPLOYMENT_REPLICA_SET_TERMINATING_REPLICAS",
        ];

        struct GeneratedVisitor;

        impl serde::de::Visitor<'_> for GeneratedVisitor {
            type Value = FeatureGate;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(formatter, "expected one of: {:?}", &FIELDS)
            }

            fn visit_i64<E>(self, v: i64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Signed(v), &self)
                    })
            }

            fn visit_u64<E>(self, v: u64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Unsigned(v), &self)
                    })
            }

            fn visit_str<E>(self, value: &str) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                match value {
                    "FEATURE_GATE_UNSPECIFIED" => Ok(FeatureGate::Unspecified),
                    "FEATURE_GATE_TAINT_TOLERATION_COMPARISON_OPERATORS" => Ok(FeatureGate::TaintTolerationComparisonOperators),
                    "FEATURE_GATE_POD_DELETION_COST" => Ok(FeatureGate::PodDeletionCost),
                    "FEATURE_GATE_DEPLOYMENT_REPLICA_SET_TERMINATING_REPLICAS" => Ok(FeatureGate::DeploymentReplicaSetTerminatingReplicas),
                    _ => Err(serde::de::Error::unknown_variant(value, FIELDS)),
                }
            }
        }
        deserializer.deserialize_any(GeneratedVisitor)
    }
}
impl serde::Serialize for GetCapabilitiesRequest {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let len = 0;
        let struct_ser = serializer.serialize_struct("nodewise.v1.GetCapabilitiesRequest", len)?;
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for GetCapabilitiesRequest {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                            Err(serde::de::Error::unknown_field(value, FIELDS))
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = GetCapabilitiesRequest;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.GetCapabilitiesRequest")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<GetCapabilitiesRequest, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                while map_.next_key::<GeneratedField>()?.is_some() {
                    let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                }
                Ok(GetCapabilitiesRequest {
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.GetCapabilitiesRequest", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for GetCapabilitiesResponse {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.engine_version.is_empty() {
            len += 1;
        }
        if !self.kubernetes_version.is_empty() {
            len += 1;
        }
        if self.limits.is_some() {
            len += 1;
        }
        if !self.digest_functions.is_empty() {
            len += 1;
        }
        if !self.workload_kinds.is_empty() {
            len += 1;
        }
        if !self.deviations.is_empty() {
            len += 1;
        }
        if !self.methods.is_empty() {
            len += 1;
        }
        if !self.features.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.GetCapabilitiesResponse", len)?;
        if !self.engine_version.is_empty() {
            struct_ser.serialize_field("engineVersion", &self.engine_version)?;
        }
        if !self.kubernetes_version.is_empty() {
            struct_ser.serialize_field("kubernetesVersion", &self.kubernetes_version)?;
        }
        if let Some(v) = self.limits.as_ref() {
            struct_ser.serialize_field("limits", v)?;
        }
        if !self.digest_functions.is_empty() {
            let v = self.digest_functions.iter().cloned().map(|v| {
                DigestFunction::try_from(v)
                    .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", v)))
                }).collect::<std::result::Result<Vec<_>, _>>()?;
            struct_ser.serialize_field("digestFunctions", &v)?;
        }
        if !self.workload_kinds.is_empty() {
            struct_ser.serialize_field("workloadKinds", &self.workload_kinds)?;
        }
        if !self.deviations.is_empty() {
            struct_ser.serialize_field("deviations", &self.deviations)?;
        }
        if !self.methods.is_empty() {
            struct_ser.serialize_field("methods", &self.methods)?;
        }
        if !self.features.is_empty() {
            struct_ser.serialize_field("features", &self.features)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for GetCapabilitiesResponse {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "engine_version",
            "engineVersion",
            "kubernetes_version",
            "kubernetesVersion",
            "limits",
            "digest_functions",
            "digestFunctions",
            "workload_kinds",
            "workloadKinds",
            "deviations",
            "methods",
            "features",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            EngineVersion,
            KubernetesVersion,
            Limits,
            DigestFunctions,
            WorkloadKinds,
            Deviations,
            Methods,
            Features,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "engineVersion" | "engine_version" => Ok(GeneratedField::EngineVersion),
                            "kubernetesVersion" | "kubernetes_version" => Ok(GeneratedField::KubernetesVersion),
                            "limits" => Ok(GeneratedField::Limits),
                            "digestFunctions" | "digest_functions" => Ok(GeneratedField::DigestFunctions),
                            "workloadKinds" | "workload_kinds" => Ok(GeneratedField::WorkloadKinds),
                            "deviations" => Ok(GeneratedField::Deviations),
                            "methods" => Ok(GeneratedField::Methods),
                            "features" => Ok(GeneratedField::Features),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = GetCapabilitiesResponse;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.GetCapabilitiesResponse")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<GetCapabilitiesResponse, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut engine_version__ = None;
                let mut kubernetes_version__ = None;
                let mut limits__ = None;
                let mut digest_functions__ = None;
                let mut workload_kinds__ = None;
                let mut deviations__ = None;
                let mut methods__ = None;
                let mut features__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::EngineVersion => {
                            if engine_version__.is_some() {
                                return Err(serde::de::Error::duplicate_field("engineVersion"));
                            }
                            engine_version__ = Some(map_.next_value()?);
                        }
                        GeneratedField::KubernetesVersion => {
                            if kubernetes_version__.is_some() {
                                return Err(serde::de::Error::duplicate_field("kubernetesVersion"));
                            }
                            kubernetes_version__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Limits => {
                            if limits__.is_some() {
                                return Err(serde::de::Error::duplicate_field("limits"));
                            }
                            limits__ = map_.next_value()?;
                        }
                        GeneratedField::DigestFunctions => {
                            if digest_functions__.is_some() {
                                return Err(serde::de::Error::duplicate_field("digestFunctions"));
                            }
                            digest_functions__ = Some(map_.next_value::<Vec<DigestFunction>>()?.into_iter().map(|x| x as i32).collect());
                        }
                        GeneratedField::WorkloadKinds => {
                            if workload_kinds__.is_some() {
                                return Err(serde::de::Error::duplicate_field("workloadKinds"));
                            }
                            workload_kinds__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Deviations => {
                            if deviations__.is_some() {
                                return Err(serde::de::Error::duplicate_field("deviations"));
                            }
                            deviations__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Methods => {
                            if methods__.is_some() {
                                return Err(serde::de::Error::duplicate_field("methods"));
                            }
                            methods__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Features => {
                            if features__.is_some() {
                                return Err(serde::de::Error::duplicate_field("features"));
                            }
                            features__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(GetCapabilitiesResponse {
                    engine_version: engine_version__.unwrap_or_default(),
                    kubernetes_version: kubernetes_version__.unwrap_or_default(),
                    limits: limits__,
                    digest_functions: digest_functions__.unwrap_or_default(),
                    workload_kinds: workload_kinds__.unwrap_or_default(),
                    deviations: deviations__.unwrap_or_default(),
                    methods: methods__.unwrap_or_default(),
                    features: features__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.GetCapabilitiesResponse", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for GetVerdictRequest {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.id.is_some() {
            len += 1;
        }
        if !self.policy_name.is_empty() {
            len += 1;
        }
        if self.workload.is_some() {
            len += 1;
        }
        if !self.status.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.GetVerdictRequest", len)?;
        if let Some(v) = self.id.as_ref() {
            struct_ser.serialize_field("id", v)?;
        }
        if !self.policy_name.is_empty() {
            struct_ser.serialize_field("policyName", &self.policy_name)?;
        }
        if let Some(v) = self.workload.as_ref() {
            struct_ser.serialize_field("workload", v)?;
        }
        if !self.status.is_empty() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("status", pbjson::private::base64::encode(&self.status).as_str())?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for GetVerdictRequest {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "id",
            "policy_name",
            "policyName",
            "workload",
            "status",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Id,
            PolicyName,
            Workload,
            Status,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "id" => Ok(GeneratedField::Id),
                            "policyName" | "policy_name" => Ok(GeneratedField::PolicyName),
                            "workload" => Ok(GeneratedField::Workload),
                            "status" => Ok(GeneratedField::Status),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = GetVerdictRequest;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.GetVerdictRequest")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<GetVerdictRequest, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut id__ = None;
                let mut policy_name__ = None;
                let mut workload__ = None;
                let mut status__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Id => {
                            if id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("id"));
                            }
                            id__ = map_.next_value()?;
                        }
                        GeneratedField::PolicyName => {
                            if policy_name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("policyName"));
                            }
                            policy_name__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Workload => {
                            if workload__.is_some() {
                                return Err(serde::de::Error::duplicate_field("workload"));
                            }
                            workload__ = map_.next_value()?;
                        }
                        GeneratedField::Status => {
                            if status__.is_some() {
                                return Err(serde::de::Error::duplicate_field("status"));
                            }
                            status__ = 
                                Some(map_.next_value::<::pbjson::private::BytesDeserialize<_>>()?.0)
                            ;
                        }
                    }
                }
                Ok(GetVerdictRequest {
                    id: id__,
                    policy_name: policy_name__.unwrap_or_default(),
                    workload: workload__,
                    status: status__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.GetVerdictRequest", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for GetVerdictResponse {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.verdict != 0 {
            len += 1;
        }
        if !self.message.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.GetVerdictResponse", len)?;
        if self.verdict != 0 {
            let v = AnalysisVerdict::try_from(self.verdict)
                .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", self.verdict)))?;
            struct_ser.serialize_field("verdict", &v)?;
        }
        if !self.message.is_empty() {
            struct_ser.serialize_field("message", &self.message)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for GetVerdictResponse {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "verdict",
            "message",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Verdict,
            Message,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "verdict" => Ok(GeneratedField::Verdict),
                            "message" => Ok(GeneratedField::Message),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = GetVerdictResponse;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.GetVerdictResponse")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<GetVerdictResponse, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut verdict__ = None;
                let mut message__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Verdict => {
                            if verdict__.is_some() {
                                return Err(serde::de::Error::duplicate_field("verdict"));
                            }
                            verdict__ = Some(map_.next_value::<AnalysisVerdict>()? as i32);
                        }
                        GeneratedField::Message => {
                            if message__.is_some() {
                                return Err(serde::de::Error::duplicate_field("message"));
                            }
                            message__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(GetVerdictResponse {
                    verdict: verdict__.unwrap_or_default(),
                    message: message__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.GetVerdictResponse", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for GroupVersionResource {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.group.is_empty() {
            len += 1;
        }
        if !self.version.is_empty() {
            len += 1;
        }
        if !self.resource.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.GroupVersionResource", len)?;
        if !self.group.is_empty() {
            struct_ser.serialize_field("group", &self.group)?;
        }
        if !self.version.is_empty() {
            struct_ser.serialize_field("version", &self.version)?;
        }
        if !self.resource.is_empty() {
            struct_ser.serialize_field("resource", &self.resource)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for GroupVersionResource {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "group",
            "version",
            "resource",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Group,
            Version,
            Resource,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "group" => Ok(GeneratedField::Group),
                            "version" => Ok(GeneratedField::Version),
                            "resource" => Ok(GeneratedField::Resource),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = GroupVersionResource;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.GroupVersionResource")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<GroupVersionResource, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut group__ = None;
                let mut version__ = None;
                let mut resource__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Group => {
                            if group__.is_some() {
                                return Err(serde::de::Error::duplicate_field("group"));
                            }
                            group__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Version => {
                            if version__.is_some() {
                                return Err(serde::de::Error::duplicate_field("version"));
                            }
                            version__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Resource => {
                            if resource__.is_some() {
                                return Err(serde::de::Error::duplicate_field("resource"));
                            }
                            resource__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(GroupVersionResource {
                    group: group__.unwrap_or_default(),
                    version: version__.unwrap_or_default(),
                    resource: resource__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.GroupVersionResource", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Label {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.key.is_empty() {
            len += 1;
        }
        if !self.value.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.Label", len)?;
        if !self.key.is_empty() {
            struct_ser.serialize_field("key", &self.key)?;
        }
        if !self.value.is_empty() {
            struct_ser.serialize_field("value", &self.value)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Label {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "key",
            "value",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Key,
            Value,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "key" => Ok(GeneratedField::Key),
                            "value" => Ok(GeneratedField::Value),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Label;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.Label")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Label, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut key__ = None;
                let mut value__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Key => {
                            if key__.is_some() {
                                return Err(serde::de::Error::duplicate_field("key"));
                            }
                            key__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Value => {
                            if value__.is_some() {
                                return Err(serde::de::Error::duplicate_field("value"));
                            }
                            value__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(Label {
                    key: key__.unwrap_or_default(),
                    value: value__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.Label", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Limits {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.max_message_bytes != 0 {
            len += 1;
        }
        if self.max_concurrent_plans != 0 {
            len += 1;
        }
        if self.max_nodes != 0 {
            len += 1;
        }
        if self.max_pods != 0 {
            len += 1;
        }
        if self.max_bucket_count != 0 {
            len += 1;
        }
        if self.max_revisions != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.Limits", len)?;
        if self.max_message_bytes != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("maxMessageBytes", ToString::to_string(&self.max_message_bytes).as_str())?;
        }
        if self.max_concurrent_plans != 0 {
            struct_ser.serialize_field("maxConcurrentPlans", &self.max_concurrent_plans)?;
        }
        if self.max_nodes != 0 {
            struct_ser.serialize_field("maxNodes", &self.max_nodes)?;
        }
        if self.max_pods != 0 {
            struct_ser.serialize_field("maxPods", &self.max_pods)?;
        }
        if self.max_bucket_count != 0 {
            struct_ser.serialize_field("maxBucketCount", &self.max_bucket_count)?;
        }
        if self.max_revisions != 0 {
            struct_ser.serialize_field("maxRevisions", &self.max_revisions)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Limits {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "max_message_bytes",
            "maxMessageBytes",
            "max_concurrent_plans",
            "maxConcurrentPlans",
            "max_nodes",
            "maxNodes",
            "max_pods",
            "maxPods",
            "max_bucket_count",
            "maxBucketCount",
            "max_revisions",
            "maxRevisions",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            MaxMessageBytes,
            MaxConcurrentPlans,
            MaxNodes,
            MaxPods,
            MaxBucketCount,
            MaxRevisions,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "maxMessageBytes" | "max_message_bytes" => Ok(GeneratedField::MaxMessageBytes),
                            "maxConcurrentPlans" | "max_concurrent_plans" => Ok(GeneratedField::MaxConcurrentPlans),
                            "maxNodes" | "max_nodes" => Ok(GeneratedField::MaxNodes),
                            "maxPods" | "max_pods" => Ok(GeneratedField::MaxPods),
                            "maxBucketCount" | "max_bucket_count" => Ok(GeneratedField::MaxBucketCount),
                            "maxRevisions" | "max_revisions" => Ok(GeneratedField::MaxRevisions),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Limits;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.Limits")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Limits, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut max_message_bytes__ = None;
                let mut max_concurrent_plans__ = None;
                let mut max_nodes__ = None;
                let mut max_pods__ = None;
                let mut max_bucket_count__ = None;
                let mut max_revisions__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::MaxMessageBytes => {
                            if max_message_bytes__.is_some() {
                                return Err(serde::de::Error::duplicate_field("maxMessageBytes"));
                            }
                            max_message_bytes__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::MaxConcurrentPlans => {
                            if max_concurrent_plans__.is_some() {
                                return Err(serde::de::Error::duplicate_field("maxConcurrentPlans"));
                            }
                            max_concurrent_plans__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::MaxNodes => {
                            if max_nodes__.is_some() {
                                return Err(serde::de::Error::duplicate_field("maxNodes"));
                            }
                            max_nodes__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::MaxPods => {
                            if max_pods__.is_some() {
                                return Err(serde::de::Error::duplicate_field("maxPods"));
                            }
                            max_pods__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::MaxBucketCount => {
                            if max_bucket_count__.is_some() {
                                return Err(serde::de::Error::duplicate_field("maxBucketCount"));
                            }
                            max_bucket_count__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::MaxRevisions => {
                            if max_revisions__.is_some() {
                                return Err(serde::de::Error::duplicate_field("maxRevisions"));
                            }
                            max_revisions__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                    }
                }
                Ok(Limits {
                    max_message_bytes: max_message_bytes__.unwrap_or_default(),
                    max_concurrent_plans: max_concurrent_plans__.unwrap_or_default(),
                    max_nodes: max_nodes__.unwrap_or_default(),
                    max_pods: max_pods__.unwrap_or_default(),
                    max_bucket_count: max_bucket_count__.unwrap_or_default(),
                    max_revisions: max_revisions__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.Limits", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Measure {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.id.is_some() {
            len += 1;
        }
        if !self.policy_name.is_empty() {
            len += 1;
        }
        if !self.credential.is_empty() {
            len += 1;
        }
        if self.provider.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.Measure", len)?;
        if let Some(v) = self.id.as_ref() {
            struct_ser.serialize_field("id", v)?;
        }
        if !self.policy_name.is_empty() {
            struct_ser.serialize_field("policyName", &self.policy_name)?;
        }
        if !self.credential.is_empty() {
            struct_ser.serialize_field("credential", &self.credential)?;
        }
        if let Some(v) = self.provider.as_ref() {
            match v {
                measure::Provider::Prometheus(v) => {
                    struct_ser.serialize_field("prometheus", v)?;
                }
                measure::Provider::Webhook(v) => {
                    struct_ser.serialize_field("webhook", v)?;
                }
                measure::Provider::VerdictService(v) => {
                    struct_ser.serialize_field("verdictService", v)?;
                }
            }
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Measure {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "id",
            "policy_name",
            "policyName",
            "credential",
            "prometheus",
            "webhook",
            "verdict_service",
            "verdictService",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Id,
            PolicyName,
            Credential,
            Prometheus,
            Webhook,
            VerdictService,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "id" => Ok(GeneratedField::Id),
                            "policyName" | "policy_name" => Ok(GeneratedField::PolicyName),
                            "credential" => Ok(GeneratedField::Credential),
                            "prometheus" => Ok(GeneratedField::Prometheus),
                            "webhook" => Ok(GeneratedField::Webhook),
                            "verdictService" | "verdict_service" => Ok(GeneratedField::VerdictService),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Measure;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.Measure")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Measure, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut id__ = None;
                let mut policy_name__ = None;
                let mut credential__ = None;
                let mut provider__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Id => {
                            if id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("id"));
                            }
                            id__ = map_.next_value()?;
                        }
                        GeneratedField::PolicyName => {
                            if policy_name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("policyName"));
                            }
                            policy_name__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Credential => {
                            if credential__.is_some() {
                                return Err(serde::de::Error::duplicate_field("credential"));
                            }
                            credential__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Prometheus => {
                            if provider__.is_some() {
                                return Err(serde::de::Error::duplicate_field("prometheus"));
                            }
                            provider__ = map_.next_value::<::std::option::Option<_>>()?.map(measure::Provider::Prometheus)
;
                        }
                        GeneratedField::Webhook => {
                            if provider__.is_some() {
                                return Err(serde::de::Error::duplicate_field("webhook"));
                            }
                            provider__ = map_.next_value::<::std::option::Option<_>>()?.map(measure::Provider::Webhook)
;
                        }
                        GeneratedField::VerdictService => {
                            if provider__.is_some() {
                                return Err(serde::de::Error::duplicate_field("verdictService"));
                            }
                            provider__ = map_.next_value::<::std::option::Option<_>>()?.map(measure::Provider::VerdictService)
;
                        }
                    }
                }
                Ok(Measure {
                    id: id__,
                    policy_name: policy_name__.unwrap_or_default(),
                    credential: credential__.unwrap_or_default(),
                    provider: provider__,
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.Measure", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for MeasuredVerdict {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.verdict != 0 {
            len += 1;
        }
        if !self.message.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.MeasuredVerdict", len)?;
        if self.verdict != 0 {
            let v = AnalysisVerdict::try_from(self.verdict)
                .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", self.verdict)))?;
            struct_ser.serialize_field("verdict", &v)?;
        }
        if !self.message.is_empty() {
            struct_ser.serialize_field("message", &self.message)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for MeasuredVerdict {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "verdict",
            "message",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Verdict,
            Message,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "verdict" => Ok(GeneratedField::Verdict),
                            "message" => Ok(GeneratedField::Message),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = MeasuredVerdict;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.MeasuredVerdict")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<MeasuredVerdict, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut verdict__ = None;
                let mut message__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Verdict => {
                            if verdict__.is_some() {
                                return Err(serde::de::Error::duplicate_field("verdict"));
                            }
                            verdict__ = Some(map_.next_value::<AnalysisVerdict>()? as i32);
                        }
                        GeneratedField::Message => {
                            if message__.is_some() {
                                return Err(serde::de::Error::duplicate_field("message"));
                            }
                            message__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(MeasuredVerdict {
                    verdict: verdict__.unwrap_or_default(),
                    message: message__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.MeasuredVerdict", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Measurement {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.id.is_some() {
            len += 1;
        }
        if self.time.is_some() {
            len += 1;
        }
        if self.result.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.Measurement", len)?;
        if let Some(v) = self.id.as_ref() {
            struct_ser.serialize_field("id", v)?;
        }
        if let Some(v) = self.time.as_ref() {
            struct_ser.serialize_field("time", v)?;
        }
        if let Some(v) = self.result.as_ref() {
            match v {
                measurement::Result::Value(v) => {
                    struct_ser.serialize_field("value", v)?;
                }
                measurement::Result::Verdict(v) => {
                    struct_ser.serialize_field("verdict", v)?;
                }
                measurement::Result::Error(v) => {
                    struct_ser.serialize_field("error", v)?;
                }
            }
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Measurement {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "id",
            "time",
            "value",
            "verdict",
            "error",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Id,
            Time,
            Value,
            Verdict,
            Error,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "id" => Ok(GeneratedField::Id),
                            "time" => Ok(GeneratedField::Time),
                            "value" => Ok(GeneratedField::Value),
                            "verdict" => Ok(GeneratedField::Verdict),
                            "error" => Ok(GeneratedField::Error),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Measurement;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.Measurement")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Measurement, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut id__ = None;
                let mut time__ = None;
                let mut result__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Id => {
                            if id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("id"));
                            }
                            id__ = map_.next_value()?;
                        }
                        GeneratedField::Time => {
                            if time__.is_some() {
                                return Err(serde::de::Error::duplicate_field("time"));
                            }
                            time__ = map_.next_value()?;
                        }
                        GeneratedField::Value => {
                            if result__.is_some() {
                                return Err(serde::de::Error::duplicate_field("value"));
                            }
                            result__ = map_.next_value::<::std::option::Option<_>>()?.map(measurement::Result::Value);
                        }
                        GeneratedField::Verdict => {
                            if result__.is_some() {
                                return Err(serde::de::Error::duplicate_field("verdict"));
                            }
                            result__ = map_.next_value::<::std::option::Option<_>>()?.map(measurement::Result::Verdict)
;
                        }
                        GeneratedField::Error => {
                            if result__.is_some() {
                                return Err(serde::de::Error::duplicate_field("error"));
                            }
                            result__ = map_.next_value::<::std::option::Option<_>>()?.map(measurement::Result::Error);
                        }
                    }
                }
                Ok(Measurement {
                    id: id__,
                    time: time__,
                    result: result__,
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.Measurement", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for MeasurementId {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.policy_uid.is_empty() {
            len += 1;
        }
        if !self.revision_hash.is_empty() {
            len += 1;
        }
        if !self.stage.is_empty() {
            len += 1;
        }
        if !self.check.is_empty() {
            len += 1;
        }
        if self.number != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.MeasurementId", len)?;
        if !self.policy_uid.is_empty() {
            struct_ser.serialize_field("policyUid", &self.policy_uid)?;
        }
        if !self.revision_hash.is_empty() {
            struct_ser.serialize_field("revisionHash", &self.revision_hash)?;
        }
        if !self.stage.is_empty() {
            struct_ser.serialize_field("stage", &self.stage)?;
        }
        if !self.check.is_empty() {
            struct_ser.serialize_field("check", &self.check)?;
        }
        if self.number != 0 {
            struct_ser.serialize_field("number", &self.number)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for MeasurementId {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "policy_uid",
            "policyUid",
            "revision_hash",
            "revisionHash",
            "stage",
            "check",
            "number",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            PolicyUid,
            RevisionHash,
            Stage,
            Check,
            Number,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "policyUid" | "policy_uid" => Ok(GeneratedField::PolicyUid),
                            "revisionHash" | "revision_hash" => Ok(GeneratedField::RevisionHash),
                            "stage" => Ok(GeneratedField::Stage),
                            "check" => Ok(GeneratedField::Check),
                            "number" => Ok(GeneratedField::Number),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = MeasurementId;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.MeasurementId")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<MeasurementId, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut policy_uid__ = None;
                let mut revision_hash__ = None;
                let mut stage__ = None;
                let mut check__ = None;
                let mut number__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::PolicyUid => {
                            if policy_uid__.is_some() {
                                return Err(serde::de::Error::duplicate_field("policyUid"));
                            }
                            policy_uid__ = Some(map_.next_value()?);
                        }
                        GeneratedField::RevisionHash => {
                            if revision_hash__.is_some() {
                                return Err(serde::de::Error::duplicate_field("revisionHash"));
                            }
                            revision_hash__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Stage => {
                            if stage__.is_some() {
                                return Err(serde::de::Error::duplicate_field("stage"));
                            }
                            stage__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Check => {
                            if check__.is_some() {
                                return Err(serde::de::Error::duplicate_field("check"));
                            }
                            check__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Number => {
                            if number__.is_some() {
                                return Err(serde::de::Error::duplicate_field("number"));
                            }
                            number__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                    }
                }
                Ok(MeasurementId {
                    policy_uid: policy_uid__.unwrap_or_default(),
                    revision_hash: revision_hash__.unwrap_or_default(),
                    stage: stage__.unwrap_or_default(),
                    check: check__.unwrap_or_default(),
                    number: number__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.MeasurementId", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for MissingBuckets {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.node_bucket_indices.is_empty() {
            len += 1;
        }
        if !self.pod_bucket_indices.is_empty() {
            len += 1;
        }
        if !self.digests.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.MissingBuckets", len)?;
        if !self.node_bucket_indices.is_empty() {
            struct_ser.serialize_field("nodeBucketIndices", &self.node_bucket_indices)?;
        }
        if !self.pod_bucket_indices.is_empty() {
            struct_ser.serialize_field("podBucketIndices", &self.pod_bucket_indices)?;
        }
        if !self.digests.is_empty() {
            struct_ser.serialize_field("digests", &self.digests.iter().map(pbjson::private::base64::encode).collect::<Vec<_>>())?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for MissingBuckets {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "node_bucket_indices",
            "nodeBucketIndices",
            "pod_bucket_indices",
            "podBucketIndices",
            "digests",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            NodeBucketIndices,
            PodBucketIndices,
            Digests,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "nodeBucketIndices" | "node_bucket_indices" => Ok(GeneratedField::NodeBucketIndices),
                            "podBucketIndices" | "pod_bucket_indices" => Ok(GeneratedField::PodBucketIndices),
                            "digests" => Ok(GeneratedField::Digests),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = MissingBuckets;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.MissingBuckets")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<MissingBuckets, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut node_bucket_indices__ = None;
                let mut pod_bucket_indices__ = None;
                let mut digests__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::NodeBucketIndices => {
                            if node_bucket_indices__.is_some() {
                                return Err(serde::de::Error::duplicate_field("nodeBucketIndices"));
                            }
                            node_bucket_indices__ = 
                                Some(map_.next_value::<Vec<::pbjson::private::NumberDeserialize<_>>>()?
                                    .into_iter().map(|x| x.0).collect())
                            ;
                        }
                        GeneratedField::PodBucketIndices => {
                            if pod_bucket_indices__.is_some() {
                                return Err(serde::de::Error::duplicate_field("podBucketIndices"));
                            }
                            pod_bucket_indices__ = 
                                Some(map_.next_value::<Vec<::pbjson::private::NumberDeserialize<_>>>()?
                                    .into_iter().map(|x| x.0).collect())
                            ;
                        }
                        GeneratedField::Digests => {
                            if digests__.is_some() {
                                return Err(serde::de::Error::duplicate_field("digests"));
                            }
                            digests__ = 
                                Some(map_.next_value::<Vec<::pbjson::private::BytesDeserialize<_>>>()?
                                    .into_iter().map(|x| x.0).collect())
                            ;
                        }
                    }
                }
                Ok(MissingBuckets {
                    node_bucket_indices: node_bucket_indices__.unwrap_or_default(),
                    pod_bucket_indices: pod_bucket_indices__.unwrap_or_default(),
                    digests: digests__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.MissingBuckets", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Node {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.name.is_empty() {
            len += 1;
        }
        if !self.uid.is_empty() {
            len += 1;
        }
        if !self.labels.is_empty() {
            len += 1;
        }
        if !self.taints.is_empty() {
            len += 1;
        }
        if self.unschedulable {
            len += 1;
        }
        if self.ready != 0 {
            len += 1;
        }
        if self.ready_transition_time.is_some() {
            len += 1;
        }
        if self.maintenance_in_progress {
            len += 1;
        }
        if !self.shared_labels.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.Node", len)?;
        if !self.name.is_empty() {
            struct_ser.serialize_field("name", &self.name)?;
        }
        if !self.uid.is_empty() {
            struct_ser.serialize_field("uid", &self.uid)?;
        }
        if !self.labels.is_empty() {
            struct_ser.serialize_field("labels", &self.labels)?;
        }
        if !self.taints.is_empty() {
            struct_ser.serialize_field("taints", &self.taints)?;
        }
        if self.unschedulable {
            struct_ser.serialize_field("unschedulable", &self.unschedulable)?;
        }
        if self.ready != 0 {
            let v = ConditionStatus::try_from(self.ready)
                .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", self.ready)))?;
            struct_ser.serialize_field("ready", &v)?;
        }
        if let Some(v) = self.ready_transition_time.as_ref() {
            struct_ser.serialize_field("readyTransitionTime", v)?;
        }
        if self.maintenance_in_progress {
            struct_ser.serialize_field("maintenanceInProgress", &self.maintenance_in_progress)?;
        }
        if !self.shared_labels.is_empty() {
            struct_ser.serialize_field("sharedLabels", &self.shared_labels)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Node {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "name",
            "uid",
            "labels",
            "taints",
            "unschedulable",
            "ready",
            "ready_transition_time",
            "readyTransitionTime",
            "maintenance_in_progress",
            "maintenanceInProgress",
            "shared_labels",
            "sharedLabels",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Name,
            Uid,
            Labels,
            Taints,
            Unschedulable,
            Ready,
            ReadyTransitionTime,
            MaintenanceInProgress,
            SharedLabels,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "name" => Ok(GeneratedField::Name),
                            "uid" => Ok(GeneratedField::Uid),
                            "labels" => Ok(GeneratedField::Labels),
                            "taints" => Ok(GeneratedField::Taints),
                            "unschedulable" => Ok(GeneratedField::Unschedulable),
                            "ready" => Ok(GeneratedField::Ready),
                            "readyTransitionTime" | "ready_transition_time" => Ok(GeneratedField::ReadyTransitionTime),
                            "maintenanceInProgress" | "maintenance_in_progress" => Ok(GeneratedField::MaintenanceInProgress),
                            "sharedLabels" | "shared_labels" => Ok(GeneratedField::SharedLabels),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Node;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.Node")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Node, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut name__ = None;
                let mut uid__ = None;
                let mut labels__ = None;
                let mut taints__ = None;
                let mut unschedulable__ = None;
                let mut ready__ = None;
                let mut ready_transition_time__ = None;
                let mut maintenance_in_progress__ = None;
                let mut shared_labels__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Name => {
                            if name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("name"));
                            }
                            name__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Uid => {
                            if uid__.is_some() {
                                return Err(serde::de::Error::duplicate_field("uid"));
                            }
                            uid__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Labels => {
                            if labels__.is_some() {
                                return Err(serde::de::Error::duplicate_field("labels"));
                            }
                            labels__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Taints => {
                            if taints__.is_some() {
                                return Err(serde::de::Error::duplicate_field("taints"));
                            }
                            taints__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Unschedulable => {
                            if unschedulable__.is_some() {
                                return Err(serde::de::Error::duplicate_field("unschedulable"));
                            }
                            unschedulable__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Ready => {
                            if ready__.is_some() {
                                return Err(serde::de::Error::duplicate_field("ready"));
                            }
                            ready__ = Some(map_.next_value::<ConditionStatus>()? as i32);
                        }
                        GeneratedField::ReadyTransitionTime => {
                            if ready_transition_time__.is_some() {
                                return Err(serde::de::Error::duplicate_field("readyTransitionTime"));
                            }
                            ready_transition_time__ = map_.next_value()?;
                        }
                        GeneratedField::MaintenanceInProgress => {
                            if maintenance_in_progress__.is_some() {
                                return Err(serde::de::Error::duplicate_field("maintenanceInProgress"));
                            }
                            maintenance_in_progress__ = Some(map_.next_value()?);
                        }
                        GeneratedField::SharedLabels => {
                            if shared_labels__.is_some() {
                                return Err(serde::de::Error::duplicate_field("sharedLabels"));
                            }
                            shared_labels__ = 
                                Some(map_.next_value::<Vec<::pbjson::private::NumberDeserialize<_>>>()?
                                    .into_iter().map(|x| x.0).collect())
                            ;
                        }
                    }
                }
                Ok(Node {
                    name: name__.unwrap_or_default(),
                    uid: uid__.unwrap_or_default(),
                    labels: labels__.unwrap_or_default(),
                    taints: taints__.unwrap_or_default(),
                    unschedulable: unschedulable__.unwrap_or_default(),
                    ready: ready__.unwrap_or_default(),
                    ready_transition_time: ready_transition_time__,
                    maintenance_in_progress: maintenance_in_progress__.unwrap_or_default(),
                    shared_labels: shared_labels__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.Node", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for NodeBucket {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.nodes.is_empty() {
            len += 1;
        }
        if !self.shared_labels.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.NodeBucket", len)?;
        if !self.nodes.is_empty() {
            struct_ser.serialize_field("nodes", &self.nodes)?;
        }
        if !self.shared_labels.is_empty() {
            struct_ser.serialize_field("sharedLabels", &self.shared_labels)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for NodeBucket {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "nodes",
            "shared_labels",
            "sharedLabels",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Nodes,
            SharedLabels,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "nodes" => Ok(GeneratedField::Nodes),
                            "sharedLabels" | "shared_labels" => Ok(GeneratedField::SharedLabels),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = NodeBucket;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.NodeBucket")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<NodeBucket, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut nodes__ = None;
                let mut shared_labels__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Nodes => {
                            if nodes__.is_some() {
                                return Err(serde::de::Error::duplicate_field("nodes"));
                            }
                            nodes__ = Some(map_.next_value()?);
                        }
                        GeneratedField::SharedLabels => {
                            if shared_labels__.is_some() {
                                return Err(serde::de::Error::duplicate_field("sharedLabels"));
                            }
                            shared_labels__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(NodeBucket {
                    nodes: nodes__.unwrap_or_default(),
                    shared_labels: shared_labels__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.NodeBucket", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for NodeCondition {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.r#type.is_empty() {
            len += 1;
        }
        if !self.status.is_empty() {
            len += 1;
        }
        if !self.reason.is_empty() {
            len += 1;
        }
        if self.since.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.NodeCondition", len)?;
        if !self.r#type.is_empty() {
            struct_ser.serialize_field("type", &self.r#type)?;
        }
        if !self.status.is_empty() {
            struct_ser.serialize_field("status", &self.status)?;
        }
        if !self.reason.is_empty() {
            struct_ser.serialize_field("reason", &self.reason)?;
        }
        if let Some(v) = self.since.as_ref() {
            struct_ser.serialize_field("since", v)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for NodeCondition {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "type",
            "status",
            "reason",
            "since",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Type,
            Status,
            Reason,
            Since,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "type" => Ok(GeneratedField::Type),
                            "status" => Ok(GeneratedField::Status),
                            "reason" => Ok(GeneratedField::Reason),
                            "since" => Ok(GeneratedField::Since),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = NodeCondition;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.NodeCondition")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<NodeCondition, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut r#type__ = None;
                let mut status__ = None;
                let mut reason__ = None;
                let mut since__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Type => {
                            if r#type__.is_some() {
                                return Err(serde::de::Error::duplicate_field("type"));
                            }
                            r#type__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Status => {
                            if status__.is_some() {
                                return Err(serde::de::Error::duplicate_field("status"));
                            }
                            status__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Reason => {
                            if reason__.is_some() {
                                return Err(serde::de::Error::duplicate_field("reason"));
                            }
                            reason__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Since => {
                            if since__.is_some() {
                                return Err(serde::de::Error::duplicate_field("since"));
                            }
                            since__ = map_.next_value()?;
                        }
                    }
                }
                Ok(NodeCondition {
                    r#type: r#type__.unwrap_or_default(),
                    status: status__.unwrap_or_default(),
                    reason: reason__.unwrap_or_default(),
                    since: since__,
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.NodeCondition", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for NodeEvaluation {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.decisions.is_empty() {
            len += 1;
        }
        if !self.requests.is_empty() {
            len += 1;
        }
        if self.is_incomplete {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.NodeEvaluation", len)?;
        if !self.decisions.is_empty() {
            struct_ser.serialize_field("decisions", &self.decisions)?;
        }
        if !self.requests.is_empty() {
            struct_ser.serialize_field("requests", &self.requests)?;
        }
        if self.is_incomplete {
            struct_ser.serialize_field("isIncomplete", &self.is_incomplete)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for NodeEvaluation {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "decisions",
            "requests",
            "is_incomplete",
            "isIncomplete",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Decisions,
            Requests,
            IsIncomplete,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "decisions" => Ok(GeneratedField::Decisions),
                            "requests" => Ok(GeneratedField::Requests),
                            "isIncomplete" | "is_incomplete" => Ok(GeneratedField::IsIncomplete),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = NodeEvaluation;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.NodeEvaluation")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<NodeEvaluation, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut decisions__ = None;
                let mut requests__ = None;
                let mut is_incomplete__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Decisions => {
                            if decisions__.is_some() {
                                return Err(serde::de::Error::duplicate_field("decisions"));
                            }
                            decisions__ = 
                                Some(map_.next_value::<Vec<::pbjson::private::NumberDeserialize<_>>>()?
                                    .into_iter().map(|x| x.0).collect())
                            ;
                        }
                        GeneratedField::Requests => {
                            if requests__.is_some() {
                                return Err(serde::de::Error::duplicate_field("requests"));
                            }
                            requests__ = Some(map_.next_value()?);
                        }
                        GeneratedField::IsIncomplete => {
                            if is_incomplete__.is_some() {
                                return Err(serde::de::Error::duplicate_field("isIncomplete"));
                            }
                            is_incomplete__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(NodeEvaluation {
                    decisions: decisions__.unwrap_or_default(),
                    requests: requests__.unwrap_or_default(),
                    is_incomplete: is_incomplete__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.NodeEvaluation", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for NodeExplanation {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.node_name.is_empty() {
            len += 1;
        }
        if self.state != 0 {
            len += 1;
        }
        if self.rule != 0 {
            len += 1;
        }
        if !self.message.is_empty() {
            len += 1;
        }
        if !self.pods.is_empty() {
            len += 1;
        }
        if self.should_run {
            len += 1;
        }
        if self.should_keep {
            len += 1;
        }
        if !self.details.is_empty() {
            len += 1;
        }
        if self.queue_position != 0 {
            len += 1;
        }
        if !self.rollout_stage.is_empty() {
            len += 1;
        }
        if self.rollout_exempt {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.NodeExplanation", len)?;
        if !self.node_name.is_empty() {
            struct_ser.serialize_field("nodeName", &self.node_name)?;
        }
        if self.state != 0 {
            let v = NodeState::try_from(self.state)
                .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", self.state)))?;
            struct_ser.serialize_field("state", &v)?;
        }
        if self.rule != 0 {
            let v = Rule::try_from(self.rule)
                .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", self.rule)))?;
            struct_ser.serialize_field("rule", &v)?;
        }
        if !self.message.is_empty() {
            struct_ser.serialize_field("message", &self.message)?;
        }
        if !self.pods.is_empty() {
            struct_ser.serialize_field("pods", &self.pods)?;
        }
        if self.should_run {
            struct_ser.serialize_field("shouldRun", &self.should_run)?;
        }
        if self.should_keep {
            struct_ser.serialize_field("shouldKeep", &self.should_keep)?;
        }
        if !self.details.is_empty() {
            struct_ser.serialize_field("details", &self.details)?;
        }
        if self.queue_position != 0 {
            struct_ser.serialize_field("queuePosition", &self.queue_position)?;
        }
        if !self.rollout_stage.is_empty() {
            struct_ser.serialize_field("rolloutStage", &self.rollout_stage)?;
        }
        if self.rollout_exempt {
            struct_ser.serialize_field("rolloutExempt", &self.rollout_exempt)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for NodeExplanation {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "node_name",
            "nodeName",
            "state",
            "rule",
            "message",
            "pods",
            "should_run",
            "shouldRun",
            "should_keep",
            "shouldKeep",
            "details",
            "queue_position",
            "queuePosition",
            "rollout_stage",
            "rolloutStage",
            "rollout_exempt",
            "rolloutExempt",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            NodeName,
            State,
            Rule,
            Message,
            Pods,
            ShouldRun,
            ShouldKeep,
            Details,
            QueuePosition,
            RolloutStage,
            RolloutExempt,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "nodeName" | "node_name" => Ok(GeneratedField::NodeName),
                            "state" => Ok(GeneratedField::State),
                            "rule" => Ok(GeneratedField::Rule),
                            "message" => Ok(GeneratedField::Message),
                            "pods" => Ok(GeneratedField::Pods),
                            "shouldRun" | "should_run" => Ok(GeneratedField::ShouldRun),
                            "shouldKeep" | "should_keep" => Ok(GeneratedField::ShouldKeep),
                            "details" => Ok(GeneratedField::Details),
                            "queuePosition" | "queue_position" => Ok(GeneratedField::QueuePosition),
                            "rolloutStage" | "rollout_stage" => Ok(GeneratedField::RolloutStage),
                            "rolloutExempt" | "rollout_exempt" => Ok(GeneratedField::RolloutExempt),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = NodeExplanation;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.NodeExplanation")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<NodeExplanation, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut node_name__ = None;
                let mut state__ = None;
                let mut rule__ = None;
                let mut message__ = None;
                let mut pods__ = None;
                let mut should_run__ = None;
                let mut should_keep__ = None;
                let mut details__ = None;
                let mut queue_position__ = None;
                let mut rollout_stage__ = None;
                let mut rollout_exempt__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::NodeName => {
                            if node_name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("nodeName"));
                            }
                            node_name__ = Some(map_.next_value()?);
                        }
                        GeneratedField::State => {
                            if state__.is_some() {
                                return Err(serde::de::Error::duplicate_field("state"));
                            }
                            state__ = Some(map_.next_value::<NodeState>()? as i32);
                        }
                        GeneratedField::Rule => {
                            if rule__.is_some() {
                                return Err(serde::de::Error::duplicate_field("rule"));
                            }
                            rule__ = Some(map_.next_value::<Rule>()? as i32);
                        }
                        GeneratedField::Message => {
                            if message__.is_some() {
                                return Err(serde::de::Error::duplicate_field("message"));
                            }
                            message__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Pods => {
                            if pods__.is_some() {
                                return Err(serde::de::Error::duplicate_field("pods"));
                            }
                            pods__ = Some(map_.next_value()?);
                        }
                        GeneratedField::ShouldRun => {
                            if should_run__.is_some() {
                                return Err(serde::de::Error::duplicate_field("shouldRun"));
                            }
                            should_run__ = Some(map_.next_value()?);
                        }
                        GeneratedField::ShouldKeep => {
                            if should_keep__.is_some() {
                                return Err(serde::de::Error::duplicate_field("shouldKeep"));
                            }
                            should_keep__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Details => {
                            if details__.is_some() {
                                return Err(serde::de::Error::duplicate_field("details"));
                            }
                            details__ = Some(map_.next_value()?);
                        }
                        GeneratedField::QueuePosition => {
                            if queue_position__.is_some() {
                                return Err(serde::de::Error::duplicate_field("queuePosition"));
                            }
                            queue_position__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::RolloutStage => {
                            if rollout_stage__.is_some() {
                                return Err(serde::de::Error::duplicate_field("rolloutStage"));
                            }
                            rollout_stage__ = Some(map_.next_value()?);
                        }
                        GeneratedField::RolloutExempt => {
                            if rollout_exempt__.is_some() {
                                return Err(serde::de::Error::duplicate_field("rolloutExempt"));
                            }
                            rollout_exempt__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(NodeExplanation {
                    node_name: node_name__.unwrap_or_default(),
                    state: state__.unwrap_or_default(),
                    rule: rule__.unwrap_or_default(),
                    message: message__.unwrap_or_default(),
                    pods: pods__.unwrap_or_default(),
                    should_run: should_run__.unwrap_or_default(),
                    should_keep: should_keep__.unwrap_or_default(),
                    details: details__.unwrap_or_default(),
                    queue_position: queue_position__.unwrap_or_default(),
                    rollout_stage: rollout_stage__.unwrap_or_default(),
                    rollout_exempt: rollout_exempt__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.NodeExplanation", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for NodePodCount {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.node_name.is_empty() {
            len += 1;
        }
        if self.pods != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.NodePodCount", len)?;
        if !self.node_name.is_empty() {
            struct_ser.serialize_field("nodeName", &self.node_name)?;
        }
        if self.pods != 0 {
            struct_ser.serialize_field("pods", &self.pods)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for NodePodCount {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "node_name",
            "nodeName",
            "pods",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            NodeName,
            Pods,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "nodeName" | "node_name" => Ok(GeneratedField::NodeName),
                            "pods" => Ok(GeneratedField::Pods),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = NodePodCount;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.NodePodCount")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<NodePodCount, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut node_name__ = None;
                let mut pods__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::NodeName => {
                            if node_name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("nodeName"));
                            }
                            node_name__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Pods => {
                            if pods__.is_some() {
                                return Err(serde::de::Error::duplicate_field("pods"));
                            }
                            pods__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                    }
                }
                Ok(NodePodCount {
                    node_name: node_name__.unwrap_or_default(),
                    pods: pods__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.NodePodCount", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for NodeShape {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.name.is_empty() {
            len += 1;
        }
        if !self.labels.is_empty() {
            len += 1;
        }
        if !self.taints.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.NodeShape", len)?;
        if !self.name.is_empty() {
            struct_ser.serialize_field("name", &self.name)?;
        }
        if !self.labels.is_empty() {
            struct_ser.serialize_field("labels", &self.labels)?;
        }
        if !self.taints.is_empty() {
            struct_ser.serialize_field("taints", &self.taints)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for NodeShape {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "name",
            "labels",
            "taints",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Name,
            Labels,
            Taints,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "name" => Ok(GeneratedField::Name),
                            "labels" => Ok(GeneratedField::Labels),
                            "taints" => Ok(GeneratedField::Taints),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = NodeShape;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.NodeShape")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<NodeShape, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut name__ = None;
                let mut labels__ = None;
                let mut taints__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Name => {
                            if name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("name"));
                            }
                            name__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Labels => {
                            if labels__.is_some() {
                                return Err(serde::de::Error::duplicate_field("labels"));
                            }
                            labels__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Taints => {
                            if taints__.is_some() {
                                return Err(serde::de::Error::duplicate_field("taints"));
                            }
                            taints__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(NodeShape {
                    name: name__.unwrap_or_default(),
                    labels: labels__.unwrap_or_default(),
                    taints: taints__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.NodeShape", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for NodeState {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        let variant = match self {
            Self::Unspecified => "NODE_STATE_UNSPECIFIED",
            Self::Runs => "NODE_STATE_RUNS",
            Self::Missing => "NODE_STATE_MISSING",
            Self::MustNotRun => "NODE_STATE_MUST_NOT_RUN",
            Self::BeingReplaced => "NODE_STATE_BEING_REPLACED",
            Self::Waiting => "NODE_STATE_WAITING",
            Self::NotAvailable => "NODE_STATE_NOT_AVAILABLE",
            Self::Blocking => "NODE_STATE_BLOCKING",
        };
        serializer.serialize_str(variant)
    }
}
impl<'de> serde::Deserialize<'de> for NodeState {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "NODE_STATE_UNSPECIFIED",
            "NODE_STATE_RUNS",
            "NODE_STATE_MISSING",
            "NODE_STATE_MUST_NOT_RUN",
            "NODE_STATE_BEING_REPLACED",
            "NODE_STATE_WAITING",
            "NODE_STATE_NOT_AVAILABLE",
            "NODE_STATE_BLOCKING",
        ];

        struct GeneratedVisitor;

        impl serde::de::Visitor<'_> for GeneratedVisitor {
            type Value = NodeState;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(formatter, "expected one of: {:?}", &FIELDS)
            }

            fn visit_i64<E>(self, v: i64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Signed(v), &self)
                    })
            }

            fn visit_u64<E>(self, v: u64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Unsigned(v), &self)
                    })
            }

            fn visit_str<E>(self, value: &str) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                match value {
                    "NODE_STATE_UNSPECIFIED" => Ok(NodeState::Unspecified),
                    "NODE_STATE_RUNS" => Ok(NodeState::Runs),
                    "NODE_STATE_MISSING" => Ok(NodeState::Missing),
                    "NODE_STATE_MUST_NOT_RUN" => Ok(NodeState::MustNotRun),
                    "NODE_STATE_BEING_REPLACED" => Ok(NodeState::BeingReplaced),
                    "NODE_STATE_WAITING" => Ok(NodeState::Waiting),
                    "NODE_STATE_NOT_AVAILABLE" => Ok(NodeState::NotAvailable),
                    "NODE_STATE_BLOCKING" => Ok(NodeState::Blocking),
                    _ => Err(serde::de::Error::unknown_variant(value, FIELDS)),
                }
            }
        }
        deserializer.deserialize_any(GeneratedVisitor)
    }
}
impl serde::Serialize for NodeStatus {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.node_name.is_empty() {
            len += 1;
        }
        if self.state != 0 {
            len += 1;
        }
        if self.rule != 0 {
            len += 1;
        }
        if !self.message.is_empty() {
            len += 1;
        }
        if self.queue_position != 0 {
            len += 1;
        }
        if !self.pods.is_empty() {
            len += 1;
        }
        if !self.conditions.is_empty() {
            len += 1;
        }
        if self.unschedulable {
            len += 1;
        }
        if !self.zone.is_empty() {
            len += 1;
        }
        if self.unit_state != 0 {
            len += 1;
        }
        if !self.block_reason.is_empty() {
            len += 1;
        }
        if !self.pool.is_empty() {
            len += 1;
        }
        if !self.rollout_stage.is_empty() {
            len += 1;
        }
        if self.rollout_exempt {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.NodeStatus", len)?;
        if !self.node_name.is_empty() {
            struct_ser.serialize_field("nodeName", &self.node_name)?;
        }
        if self.state != 0 {
            let v = NodeState::try_from(self.state)
                .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", self.state)))?;
            struct_ser.serialize_field("state", &v)?;
        }
        if self.rule != 0 {
            let v = Rule::try_from(self.rule)
                .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", self.rule)))?;
            struct_ser.serialize_field("rule", &v)?;
        }
        if !self.message.is_empty() {
            struct_ser.serialize_field("message", &self.message)?;
        }
        if self.queue_position != 0 {
            struct_ser.serialize_field("queuePosition", &self.queue_position)?;
        }
        if !self.pods.is_empty() {
            struct_ser.serialize_field("pods", &self.pods)?;
        }
        if !self.conditions.is_empty() {
            struct_ser.serialize_field("conditions", &self.conditions)?;
        }
        if self.unschedulable {
            struct_ser.serialize_field("unschedulable", &self.unschedulable)?;
        }
        if !self.zone.is_empty() {
            struct_ser.serialize_field("zone", &self.zone)?;
        }
        if self.unit_state != 0 {
            let v = UnitState::try_from(self.unit_state)
                .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", self.unit_state)))?;
            struct_ser.serialize_field("unitState", &v)?;
        }
        if !self.block_reason.is_empty() {
            struct_ser.serialize_field("blockReason", &self.block_reason)?;
        }
        if !self.pool.is_empty() {
            struct_ser.serialize_field("pool", &self.pool)?;
        }
        if !self.rollout_stage.is_empty() {
            struct_ser.serialize_field("rolloutStage", &self.rollout_stage)?;
        }
        if self.rollout_exempt {
            struct_ser.serialize_field("rolloutExempt", &self.rollout_exempt)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for NodeStatus {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "node_name",
            "nodeName",
            "state",
            "rule",
            "message",
            "queue_position",
            "queuePosition",
            "pods",
            "conditions",
            "unschedulable",
            "zone",
            "unit_state",
            "unitState",
            "block_reason",
            "blockReason",
            "pool",
            "rollout_stage",
            "rolloutStage",
            "rollout_exempt",
            "rolloutExempt",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            NodeName,
            State,
            Rule,
            Message,
            QueuePosition,
            Pods,
            Conditions,
            Unschedulable,
            Zone,
            UnitState,
            BlockReason,
            Pool,
            RolloutStage,
            RolloutExempt,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "nodeName" | "node_name" => Ok(GeneratedField::NodeName),
                            "state" => Ok(GeneratedField::State),
                            "rule" => Ok(GeneratedField::Rule),
                            "message" => Ok(GeneratedField::Message),
                            "queuePosition" | "queue_position" => Ok(GeneratedField::QueuePosition),
                            "pods" => Ok(GeneratedField::Pods),
                            "conditions" => Ok(GeneratedField::Conditions),
                            "unschedulable" => Ok(GeneratedField::Unschedulable),
                            "zone" => Ok(GeneratedField::Zone),
                            "unitState" | "unit_state" => Ok(GeneratedField::UnitState),
                            "blockReason" | "block_reason" => Ok(GeneratedField::BlockReason),
                            "pool" => Ok(GeneratedField::Pool),
                            "rolloutStage" | "rollout_stage" => Ok(GeneratedField::RolloutStage),
                            "rolloutExempt" | "rollout_exempt" => Ok(GeneratedField::RolloutExempt),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = NodeStatus;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.NodeStatus")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<NodeStatus, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut node_name__ = None;
                let mut state__ = None;
                let mut rule__ = None;
                let mut message__ = None;
                let mut queue_position__ = None;
                let mut pods__ = None;
                let mut conditions__ = None;
                let mut unschedulable__ = None;
                let mut zone__ = None;
                let mut unit_state__ = None;
                let mut block_reason__ = None;
                let mut pool__ = None;
                let mut rollout_stage__ = None;
                let mut rollout_exempt__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::NodeName => {
                            if node_name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("nodeName"));
                            }
                            node_name__ = Some(map_.next_value()?);
                        }
                        GeneratedField::State => {
                            if state__.is_some() {
                                return Err(serde::de::Error::duplicate_field("state"));
                            }
                            state__ = Some(map_.next_value::<NodeState>()? as i32);
                        }
                        GeneratedField::Rule => {
                            if rule__.is_some() {
                                return Err(serde::de::Error::duplicate_field("rule"));
                            }
                            rule__ = Some(map_.next_value::<Rule>()? as i32);
                        }
                        GeneratedField::Message => {
                            if message__.is_some() {
                                return Err(serde::de::Error::duplicate_field("message"));
                            }
                            message__ = Some(map_.next_value()?);
                        }
                        GeneratedField::QueuePosition => {
                            if queue_position__.is_some() {
                                return Err(serde::de::Error::duplicate_field("queuePosition"));
                            }
                            queue_position__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Pods => {
                            if pods__.is_some() {
                                return Err(serde::de::Error::duplicate_field("pods"));
                            }
                            pods__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Conditions => {
                            if conditions__.is_some() {
                                return Err(serde::de::Error::duplicate_field("conditions"));
                            }
                            conditions__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Unschedulable => {
                            if unschedulable__.is_some() {
                                return Err(serde::de::Error::duplicate_field("unschedulable"));
                            }
                            unschedulable__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Zone => {
                            if zone__.is_some() {
                                return Err(serde::de::Error::duplicate_field("zone"));
                            }
                            zone__ = Some(map_.next_value()?);
                        }
                        GeneratedField::UnitState => {
                            if unit_state__.is_some() {
                                return Err(serde::de::Error::duplicate_field("unitState"));
                            }
                            unit_state__ = Some(map_.next_value::<UnitState>()? as i32);
                        }
                        GeneratedField::BlockReason => {
                            if block_reason__.is_some() {
                                return Err(serde::de::Error::duplicate_field("blockReason"));
                            }
                            block_reason__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Pool => {
                            if pool__.is_some() {
                                return Err(serde::de::Error::duplicate_field("pool"));
                            }
                            pool__ = Some(map_.next_value()?);
                        }
                        GeneratedField::RolloutStage => {
                            if rollout_stage__.is_some() {
                                return Err(serde::de::Error::duplicate_field("rolloutStage"));
                            }
                            rollout_stage__ = Some(map_.next_value()?);
                        }
                        GeneratedField::RolloutExempt => {
                            if rollout_exempt__.is_some() {
                                return Err(serde::de::Error::duplicate_field("rolloutExempt"));
                            }
                            rollout_exempt__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(NodeStatus {
                    node_name: node_name__.unwrap_or_default(),
                    state: state__.unwrap_or_default(),
                    rule: rule__.unwrap_or_default(),
                    message: message__.unwrap_or_default(),
                    queue_position: queue_position__.unwrap_or_default(),
                    pods: pods__.unwrap_or_default(),
                    conditions: conditions__.unwrap_or_default(),
                    unschedulable: unschedulable__.unwrap_or_default(),
                    zone: zone__.unwrap_or_default(),
                    unit_state: unit_state__.unwrap_or_default(),
                    block_reason: block_reason__.unwrap_or_default(),
                    pool: pool__.unwrap_or_default(),
                    rollout_stage: rollout_stage__.unwrap_or_default(),
                    rollout_exempt: rollout_exempt__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.NodeStatus", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ObjectReference {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.name.is_empty() {
            len += 1;
        }
        if !self.uid.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.ObjectReference", len)?;
        if !self.name.is_empty() {
            struct_ser.serialize_field("name", &self.name)?;
        }
        if !self.uid.is_empty() {
            struct_ser.serialize_field("uid", &self.uid)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ObjectReference {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "name",
            "uid",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Name,
            Uid,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "name" => Ok(GeneratedField::Name),
                            "uid" => Ok(GeneratedField::Uid),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ObjectReference;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.ObjectReference")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ObjectReference, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut name__ = None;
                let mut uid__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Name => {
                            if name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("name"));
                            }
                            name__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Uid => {
                            if uid__.is_some() {
                                return Err(serde::de::Error::duplicate_field("uid"));
                            }
                            uid__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(ObjectReference {
                    name: name__.unwrap_or_default(),
                    uid: uid__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.ObjectReference", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Outcome {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.action_id != 0 {
            len += 1;
        }
        if self.result != 0 {
            len += 1;
        }
        if !self.message.is_empty() {
            len += 1;
        }
        if self.http_status != 0 {
            len += 1;
        }
        if self.ignored {
            len += 1;
        }
        if self.subject.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.Outcome", len)?;
        if self.action_id != 0 {
            struct_ser.serialize_field("actionId", &self.action_id)?;
        }
        if self.result != 0 {
            let v = Result::try_from(self.result)
                .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", self.result)))?;
            struct_ser.serialize_field("result", &v)?;
        }
        if !self.message.is_empty() {
            struct_ser.serialize_field("message", &self.message)?;
        }
        if self.http_status != 0 {
            struct_ser.serialize_field("httpStatus", &self.http_status)?;
        }
        if self.ignored {
            struct_ser.serialize_field("ignored", &self.ignored)?;
        }
        if let Some(v) = self.subject.as_ref() {
            match v {
                outcome::Subject::CreatedPod(v) => {
                    struct_ser.serialize_field("createdPod", v)?;
                }
                outcome::Subject::DeletedPodUid(v) => {
                    struct_ser.serialize_field("deletedPodUid", v)?;
                }
            }
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Outcome {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "action_id",
            "actionId",
            "result",
            "message",
            "http_status",
            "httpStatus",
            "ignored",
            "created_pod",
            "createdPod",
            "deleted_pod_uid",
            "deletedPodUid",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            ActionId,
            Result,
            Message,
            HttpStatus,
            Ignored,
            CreatedPod,
            DeletedPodUid,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "actionId" | "action_id" => Ok(GeneratedField::ActionId),
                            "result" => Ok(GeneratedField::Result),
                            "message" => Ok(GeneratedField::Message),
                            "httpStatus" | "http_status" => Ok(GeneratedField::HttpStatus),
                            "ignored" => Ok(GeneratedField::Ignored),
                            "createdPod" | "created_pod" => Ok(GeneratedField::CreatedPod),
                            "deletedPodUid" | "deleted_pod_uid" => Ok(GeneratedField::DeletedPodUid),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Outcome;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.Outcome")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Outcome, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut action_id__ = None;
                let mut result__ = None;
                let mut message__ = None;
                let mut http_status__ = None;
                let mut ignored__ = None;
                let mut subject__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::ActionId => {
                            if action_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("actionId"));
                            }
                            action_id__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Result => {
                            if result__.is_some() {
                                return Err(serde::de::Error::duplicate_field("result"));
                            }
                            result__ = Some(map_.next_value::<Result>()? as i32);
                        }
                        GeneratedField::Message => {
                            if message__.is_some() {
                                return Err(serde::de::Error::duplicate_field("message"));
                            }
                            message__ = Some(map_.next_value()?);
                        }
                        GeneratedField::HttpStatus => {
                            if http_status__.is_some() {
                                return Err(serde::de::Error::duplicate_field("httpStatus"));
                            }
                            http_status__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Ignored => {
                            if ignored__.is_some() {
                                return Err(serde::de::Error::duplicate_field("ignored"));
                            }
                            ignored__ = Some(map_.next_value()?);
                        }
                        GeneratedField::CreatedPod => {
                            if subject__.is_some() {
                                return Err(serde::de::Error::duplicate_field("createdPod"));
                            }
                            subject__ = map_.next_value::<::std::option::Option<_>>()?.map(outcome::Subject::CreatedPod)
;
                        }
                        GeneratedField::DeletedPodUid => {
                            if subject__.is_some() {
                                return Err(serde::de::Error::duplicate_field("deletedPodUid"));
                            }
                            subject__ = map_.next_value::<::std::option::Option<_>>()?.map(outcome::Subject::DeletedPodUid);
                        }
                    }
                }
                Ok(Outcome {
                    action_id: action_id__.unwrap_or_default(),
                    result: result__.unwrap_or_default(),
                    message: message__.unwrap_or_default(),
                    http_status: http_status__.unwrap_or_default(),
                    ignored: ignored__.unwrap_or_default(),
                    subject: subject__,
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.Outcome", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for OwnWrite {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.resource.is_empty() {
            len += 1;
        }
        if !self.written_resource_version.is_empty() {
            len += 1;
        }
        if !self.observed_resource_version.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.OwnWrite", len)?;
        if !self.resource.is_empty() {
            struct_ser.serialize_field("resource", &self.resource)?;
        }
        if !self.written_resource_version.is_empty() {
            struct_ser.serialize_field("writtenResourceVersion", &self.written_resource_version)?;
        }
        if !self.observed_resource_version.is_empty() {
            struct_ser.serialize_field("observedResourceVersion", &self.observed_resource_version)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for OwnWrite {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "resource",
            "written_resource_version",
            "writtenResourceVersion",
            "observed_resource_version",
            "observedResourceVersion",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Resource,
            WrittenResourceVersion,
            ObservedResourceVersion,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "resource" => Ok(GeneratedField::Resource),
                            "writtenResourceVersion" | "written_resource_version" => Ok(GeneratedField::WrittenResourceVersion),
                            "observedResourceVersion" | "observed_resource_version" => Ok(GeneratedField::ObservedResourceVersion),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = OwnWrite;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.OwnWrite")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<OwnWrite, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut resource__ = None;
                let mut written_resource_version__ = None;
                let mut observed_resource_version__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Resource => {
                            if resource__.is_some() {
                                return Err(serde::de::Error::duplicate_field("resource"));
                            }
                            resource__ = Some(map_.next_value()?);
                        }
                        GeneratedField::WrittenResourceVersion => {
                            if written_resource_version__.is_some() {
                                return Err(serde::de::Error::duplicate_field("writtenResourceVersion"));
                            }
                            written_resource_version__ = Some(map_.next_value()?);
                        }
                        GeneratedField::ObservedResourceVersion => {
                            if observed_resource_version__.is_some() {
                                return Err(serde::de::Error::duplicate_field("observedResourceVersion"));
                            }
                            observed_resource_version__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(OwnWrite {
                    resource: resource__.unwrap_or_default(),
                    written_resource_version: written_resource_version__.unwrap_or_default(),
                    observed_resource_version: observed_resource_version__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.OwnWrite", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for PatchObject {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.resource.is_some() {
            len += 1;
        }
        if self.object.is_some() {
            len += 1;
        }
        if !self.subresource.is_empty() {
            len += 1;
        }
        if self.patch_type != 0 {
            len += 1;
        }
        if !self.patch.is_empty() {
            len += 1;
        }
        if !self.failure_pointer.is_empty() {
            len += 1;
        }
        if self.claim != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.PatchObject", len)?;
        if let Some(v) = self.resource.as_ref() {
            struct_ser.serialize_field("resource", v)?;
        }
        if let Some(v) = self.object.as_ref() {
            struct_ser.serialize_field("object", v)?;
        }
        if !self.subresource.is_empty() {
            struct_ser.serialize_field("subresource", &self.subresource)?;
        }
        if self.patch_type != 0 {
            let v = PatchType::try_from(self.patch_type)
                .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", self.patch_type)))?;
            struct_ser.serialize_field("patchType", &v)?;
        }
        if !self.patch.is_empty() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("patch", pbjson::private::base64::encode(&self.patch).as_str())?;
        }
        if !self.failure_pointer.is_empty() {
            struct_ser.serialize_field("failurePointer", &self.failure_pointer)?;
        }
        if self.claim != 0 {
            let v = Claim::try_from(self.claim)
                .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", self.claim)))?;
            struct_ser.serialize_field("claim", &v)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for PatchObject {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "resource",
            "object",
            "subresource",
            "patch_type",
            "patchType",
            "patch",
            "failure_pointer",
            "failurePointer",
            "claim",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Resource,
            Object,
            Subresource,
            PatchType,
            Patch,
            FailurePointer,
            Claim,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "resource" => Ok(GeneratedField::Resource),
                            "object" => Ok(GeneratedField::Object),
                            "subresource" => Ok(GeneratedField::Subresource),
                            "patchType" | "patch_type" => Ok(GeneratedField::PatchType),
                            "patch" => Ok(GeneratedField::Patch),
                            "failurePointer" | "failure_pointer" => Ok(GeneratedField::FailurePointer),
                            "claim" => Ok(GeneratedField::Claim),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = PatchObject;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.PatchObject")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<PatchObject, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut resource__ = None;
                let mut object__ = None;
                let mut subresource__ = None;
                let mut patch_type__ = None;
                let mut patch__ = None;
                let mut failure_pointer__ = None;
                let mut claim__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Resource => {
                            if resource__.is_some() {
                                return Err(serde::de::Error::duplicate_field("resource"));
                            }
                            resource__ = map_.next_value()?;
                        }
                        GeneratedField::Object => {
                            if object__.is_some() {
                                return Err(serde::de::Error::duplicate_field("object"));
                            }
                            object__ = map_.next_value()?;
                        }
                        GeneratedField::Subresource => {
                            if subresource__.is_some() {
                                return Err(serde::de::Error::duplicate_field("subresource"));
                            }
                            subresource__ = Some(map_.next_value()?);
                        }
                        GeneratedField::PatchType => {
                            if patch_type__.is_some() {
                                return Err(serde::de::Error::duplicate_field("patchType"));
                            }
                            patch_type__ = Some(map_.next_value::<PatchType>()? as i32);
                        }
                        GeneratedField::Patch => {
                            if patch__.is_some() {
                                return Err(serde::de::Error::duplicate_field("patch"));
                            }
                            patch__ = 
                                Some(map_.next_value::<::pbjson::private::BytesDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::FailurePointer => {
                            if failure_pointer__.is_some() {
                                return Err(serde::de::Error::duplicate_field("failurePointer"));
                            }
                            failure_pointer__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Claim => {
                            if claim__.is_some() {
                                return Err(serde::de::Error::duplicate_field("claim"));
                            }
                            claim__ = Some(map_.next_value::<Claim>()? as i32);
                        }
                    }
                }
                Ok(PatchObject {
                    resource: resource__,
                    object: object__,
                    subresource: subresource__.unwrap_or_default(),
                    patch_type: patch_type__.unwrap_or_default(),
                    patch: patch__.unwrap_or_default(),
                    failure_pointer: failure_pointer__.unwrap_or_default(),
                    claim: claim__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.PatchObject", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for PatchType {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        let variant = match self {
            Self::Unspecified => "PATCH_TYPE_UNSPECIFIED",
            Self::Merge => "PATCH_TYPE_MERGE",
            Self::StrategicMerge => "PATCH_TYPE_STRATEGIC_MERGE",
        };
        serializer.serialize_str(variant)
    }
}
impl<'de> serde::Deserialize<'de> for PatchType {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "PATCH_TYPE_UNSPECIFIED",
            "PATCH_TYPE_MERGE",
            "PATCH_TYPE_STRATEGIC_MERGE",
        ];

        struct GeneratedVisitor;

        impl serde::de::Visitor<'_> for GeneratedVisitor {
            type Value = PatchType;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(formatter, "expected one of: {:?}", &FIELDS)
            }

            fn visit_i64<E>(self, v: i64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Signed(v), &self)
                    })
            }

            fn visit_u64<E>(self, v: u64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Unsigned(v), &self)
                    })
            }

            fn visit_str<E>(self, value: &str) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                match value {
                    "PATCH_TYPE_UNSPECIFIED" => Ok(PatchType::Unspecified),
                    "PATCH_TYPE_MERGE" => Ok(PatchType::Merge),
                    "PATCH_TYPE_STRATEGIC_MERGE" => Ok(PatchType::StrategicMerge),
                    _ => Err(serde::de::Error::unknown_variant(value, FIELDS)),
                }
            }
        }
        deserializer.deserialize_any(GeneratedVisitor)
    }
}
impl serde::Serialize for Phase {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.kind != 0 {
            len += 1;
        }
        if !self.batches.is_empty() {
            len += 1;
        }
        if self.aborts_on_failure {
            len += 1;
        }
        if self.requires_success {
            len += 1;
        }
        if self.requires_failure {
            len += 1;
        }
        if self.ignores_failure {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.Phase", len)?;
        if self.kind != 0 {
            let v = PhaseKind::try_from(self.kind)
                .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", self.kind)))?;
            struct_ser.serialize_field("kind", &v)?;
        }
        if !self.batches.is_empty() {
            struct_ser.serialize_field("batches", &self.batches)?;
        }
        if self.aborts_on_failure {
            struct_ser.serialize_field("abortsOnFailure", &self.aborts_on_failure)?;
        }
        if self.requires_success {
            struct_ser.serialize_field("requiresSuccess", &self.requires_success)?;
        }
        if self.requires_failure {
            struct_ser.serialize_field("requiresFailure", &self.requires_failure)?;
        }
        if self.ignores_failure {
            struct_ser.serialize_field("ignoresFailure", &self.ignores_failure)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Phase {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "kind",
            "batches",
            "aborts_on_failure",
            "abortsOnFailure",
            "requires_success",
            "requiresSuccess",
            "requires_failure",
            "requiresFailure",
            "ignores_failure",
            "ignoresFailure",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Kind,
            Batches,
            AbortsOnFailure,
            RequiresSuccess,
            RequiresFailure,
            IgnoresFailure,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "kind" => Ok(GeneratedField::Kind),
                            "batches" => Ok(GeneratedField::Batches),
                            "abortsOnFailure" | "aborts_on_failure" => Ok(GeneratedField::AbortsOnFailure),
                            "requiresSuccess" | "requires_success" => Ok(GeneratedField::RequiresSuccess),
                            "requiresFailure" | "requires_failure" => Ok(GeneratedField::RequiresFailure),
                            "ignoresFailure" | "ignores_failure" => Ok(GeneratedField::IgnoresFailure),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Phase;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.Phase")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Phase, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut kind__ = None;
                let mut batches__ = None;
                let mut aborts_on_failure__ = None;
                let mut requires_success__ = None;
                let mut requires_failure__ = None;
                let mut ignores_failure__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Kind => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("kind"));
                            }
                            kind__ = Some(map_.next_value::<PhaseKind>()? as i32);
                        }
                        GeneratedField::Batches => {
                            if batches__.is_some() {
                                return Err(serde::de::Error::duplicate_field("batches"));
                            }
                            batches__ = Some(map_.next_value()?);
                        }
                        GeneratedField::AbortsOnFailure => {
                            if aborts_on_failure__.is_some() {
                                return Err(serde::de::Error::duplicate_field("abortsOnFailure"));
                            }
                            aborts_on_failure__ = Some(map_.next_value()?);
                        }
                        GeneratedField::RequiresSuccess => {
                            if requires_success__.is_some() {
                                return Err(serde::de::Error::duplicate_field("requiresSuccess"));
                            }
                            requires_success__ = Some(map_.next_value()?);
                        }
                        GeneratedField::RequiresFailure => {
                            if requires_failure__.is_some() {
                                return Err(serde::de::Error::duplicate_field("requiresFailure"));
                            }
                            requires_failure__ = Some(map_.next_value()?);
                        }
                        GeneratedField::IgnoresFailure => {
                            if ignores_failure__.is_some() {
                                return Err(serde::de::Error::duplicate_field("ignoresFailure"));
                            }
                            ignores_failure__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(Phase {
                    kind: kind__.unwrap_or_default(),
                    batches: batches__.unwrap_or_default(),
                    aborts_on_failure: aborts_on_failure__.unwrap_or_default(),
                    requires_success: requires_success__.unwrap_or_default(),
                    requires_failure: requires_failure__.unwrap_or_default(),
                    ignores_failure: ignores_failure__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.Phase", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for PhaseKind {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        let variant = match self {
            Self::Unspecified => "PHASE_KIND_UNSPECIFIED",
            Self::Revisions => "PHASE_KIND_REVISIONS",
            Self::Claims => "PHASE_KIND_CLAIMS",
            Self::Events => "PHASE_KIND_EVENTS",
            Self::Creates => "PHASE_KIND_CREATES",
            Self::Deletes => "PHASE_KIND_DELETES",
            Self::Cleanup => "PHASE_KIND_CLEANUP",
            Self::Status => "PHASE_KIND_STATUS",
            Self::ReplicaSets => "PHASE_KIND_REPLICA_SETS",
            Self::OldReplicaSets => "PHASE_KIND_OLD_REPLICA_SETS",
            Self::Failure => "PHASE_KIND_FAILURE",
            Self::Rollback => "PHASE_KIND_ROLLBACK",
            Self::RolloutPolicies => "PHASE_KIND_ROLLOUT_POLICIES",
            Self::Analysis => "PHASE_KIND_ANALYSIS",
        };
        serializer.serialize_str(variant)
    }
}
impl<'de> serde::Deserialize<'de> for PhaseKind {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "PHASE_KIND_UNSPECIFIED",
            "PHASE_KIND_REVISIONS",
            "PHASE_KIND_CLAIMS",
            "PHASE_KIND_EVENTS",
            "PHASE_KIND_CREATES",
            "PHASE_KIND_DELETES",
            "PHASE_KIND_CLEANUP",
            "PHASE_KIND_STATUS",
            "PHASE_KIND_REPLICA_SETS",
            "PHASE_KIND_OLD_REPLICA_SETS",
            "PHASE_KIND_FAILURE",
            "PHASE_KIND_ROLLBACK",
            "PHASE_KIND_ROLLOUT_POLICIES",
            "PHASE_KIND_ANALYSIS",
        ];

        struct GeneratedVisitor;

        impl serde::de::Visitor<'_> for GeneratedVisitor {
            type Value = PhaseKind;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(formatter, "expected one of: {:?}", &FIELDS)
            }

            fn visit_i64<E>(self, v: i64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Signed(v), &self)
                    })
            }

            fn visit_u64<E>(self, v: u64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Unsigned(v), &self)
                    })
            }

            fn visit_str<E>(self, value: &str) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                match value {
                    "PHASE_KIND_UNSPECIFIED" => Ok(PhaseKind::Unspecified),
                    "PHASE_KIND_REVISIONS" => Ok(PhaseKind::Revisions),
                    "PHASE_KIND_CLAIMS" => Ok(PhaseKind::Claims),
                    "PHASE_KIND_EVENTS" => Ok(PhaseKind::Events),
                    "PHASE_KIND_CREATES" => Ok(PhaseKind::Creates),
                    "PHASE_KIND_DELETES" => Ok(PhaseKind::Deletes),
                    "PHASE_KIND_CLEANUP" => Ok(PhaseKind::Cleanup),
                    "PHASE_KIND_STATUS" => Ok(PhaseKind::Status),
                    "PHASE_KIND_REPLICA_SETS" => Ok(PhaseKind::ReplicaSets),
                    "PHASE_KIND_OLD_REPLICA_SETS" => Ok(PhaseKind::OldReplicaSets),
                    "PHASE_KIND_FAILURE" => Ok(PhaseKind::Failure),
                    "PHASE_KIND_ROLLBACK" => Ok(PhaseKind::Rollback),
                    "PHASE_KIND_ROLLOUT_POLICIES" => Ok(PhaseKind::RolloutPolicies),
                    "PHASE_KIND_ANALYSIS" => Ok(PhaseKind::Analysis),
                    _ => Err(serde::de::Error::unknown_variant(value, FIELDS)),
                }
            }
        }
        deserializer.deserialize_any(GeneratedVisitor)
    }
}
impl serde::Serialize for Plan {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.verdict != 0 {
            len += 1;
        }
        if !self.plan_id.is_empty() {
            len += 1;
        }
        if self.workload.is_some() {
            len += 1;
        }
        if !self.phases.is_empty() {
            len += 1;
        }
        if !self.pod_manifest.is_empty() {
            len += 1;
        }
        if !self.node_name_pointers.is_empty() {
            len += 1;
        }
        if self.state.is_some() {
            len += 1;
        }
        if self.requeue_after.is_some() {
            len += 1;
        }
        if !self.requeue_reason.is_empty() {
            len += 1;
        }
        if !self.error.is_empty() {
            len += 1;
        }
        if self.daemon_set_status.is_some() {
            len += 1;
        }
        if self.rollout.is_some() {
            len += 1;
        }
        if !self.deviations.is_empty() {
            len += 1;
        }
        if self.scope != 0 {
            len += 1;
        }
        if !self.warnings.is_empty() {
            len += 1;
        }
        if self.more_warnings != 0 {
            len += 1;
        }
        if !self.rollout_policy_uids.is_empty() {
            len += 1;
        }
        if self.status.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.Plan", len)?;
        if self.verdict != 0 {
            let v = Verdict::try_from(self.verdict)
                .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", self.verdict)))?;
            struct_ser.serialize_field("verdict", &v)?;
        }
        if !self.plan_id.is_empty() {
            struct_ser.serialize_field("planId", &self.plan_id)?;
        }
        if let Some(v) = self.workload.as_ref() {
            struct_ser.serialize_field("workload", v)?;
        }
        if !self.phases.is_empty() {
            struct_ser.serialize_field("phases", &self.phases)?;
        }
        if !self.pod_manifest.is_empty() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("podManifest", pbjson::private::base64::encode(&self.pod_manifest).as_str())?;
        }
        if !self.node_name_pointers.is_empty() {
            struct_ser.serialize_field("nodeNamePointers", &self.node_name_pointers)?;
        }
        if let Some(v) = self.state.as_ref() {
            struct_ser.serialize_field("state", v)?;
        }
        if let Some(v) = self.requeue_after.as_ref() {
            struct_ser.serialize_field("requeueAfter", v)?;
        }
        if !self.requeue_reason.is_empty() {
            struct_ser.serialize_field("requeueReason", &self.requeue_reason)?;
        }
        if !self.error.is_empty() {
            struct_ser.serialize_field("error", &self.error)?;
        }
        if let Some(v) = self.daemon_set_status.as_ref() {
            struct_ser.serialize_field("daemonSetStatus", v)?;
        }
        if let Some(v) = self.rollout.as_ref() {
            struct_ser.serialize_field("rollout", v)?;
        }
        if !self.deviations.is_empty() {
            let v = self.deviations.iter().cloned().map(|v| {
                Deviation::try_from(v)
                    .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", v)))
                }).collect::<std::result::Result<Vec<_>, _>>()?;
            struct_ser.serialize_field("deviations", &v)?;
        }
        if self.scope != 0 {
            let v = Scope::try_from(self.scope)
                .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", self.scope)))?;
            struct_ser.serialize_field("scope", &v)?;
        }
        if !self.warnings.is_empty() {
            struct_ser.serialize_field("warnings", &self.warnings)?;
        }
        if self.more_warnings != 0 {
            struct_ser.serialize_field("moreWarnings", &self.more_warnings)?;
        }
        if !self.rollout_policy_uids.is_empty() {
            struct_ser.serialize_field("rolloutPolicyUids", &self.rollout_policy_uids)?;
        }
        if let Some(v) = self.status.as_ref() {
            match v {
                plan::Status::ReplicaSetStatus(v) => {
                    struct_ser.serialize_field("replicaSetStatus", v)?;
                }
                plan::Status::DeploymentStatus(v) => {
                    struct_ser.serialize_field("deploymentStatus", v)?;
                }
            }
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Plan {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "verdict",
            "plan_id",
            "planId",
            "workload",
            "phases",
            "pod_manifest",
            "podManifest",
            "node_name_pointers",
            "nodeNamePointers",
            "state",
            "requeue_after",
            "requeueAfter",
            "requeue_reason",
            "requeueReason",
            "error",
            "daemon_set_status",
            "daemonSetStatus",
            "rollout",
            "deviations",
            "scope",
            "warnings",
            "more_warnings",
            "moreWarnings",
            "rollout_policy_uids",
            "rolloutPolicyUids",
            "replica_set_status",
            "replicaSetStatus",
            "deployment_status",
            "deploymentStatus",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Verdict,
            PlanId,
            Workload,
            Phases,
            PodManifest,
            NodeNamePointers,
            State,
            RequeueAfter,
            RequeueReason,
            Error,
            DaemonSetStatus,
            Rollout,
            Deviations,
            Scope,
            Warnings,
            MoreWarnings,
            RolloutPolicyUids,
            ReplicaSetStatus,
            DeploymentStatus,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "verdict" => Ok(GeneratedField::Verdict),
                            "planId" | "plan_id" => Ok(GeneratedField::PlanId),
                            "workload" => Ok(GeneratedField::Workload),
                            "phases" => Ok(GeneratedField::Phases),
                            "podManifest" | "pod_manifest" => Ok(GeneratedField::PodManifest),
                            "nodeNamePointers" | "node_name_pointers" => Ok(GeneratedField::NodeNamePointers),
                            "state" => Ok(GeneratedField::State),
                            "requeueAfter" | "requeue_after" => Ok(GeneratedField::RequeueAfter),
                            "requeueReason" | "requeue_reason" => Ok(GeneratedField::RequeueReason),
                            "error" => Ok(GeneratedField::Error),
                            "daemonSetStatus" | "daemon_set_status" => Ok(GeneratedField::DaemonSetStatus),
                            "rollout" => Ok(GeneratedField::Rollout),
                            "deviations" => Ok(GeneratedField::Deviations),
                            "scope" => Ok(GeneratedField::Scope),
                            "warnings" => Ok(GeneratedField::Warnings),
                            "moreWarnings" | "more_warnings" => Ok(GeneratedField::MoreWarnings),
                            "rolloutPolicyUids" | "rollout_policy_uids" => Ok(GeneratedField::RolloutPolicyUids),
                            "replicaSetStatus" | "replica_set_status" => Ok(GeneratedField::ReplicaSetStatus),
                            "deploymentStatus" | "deployment_status" => Ok(GeneratedField::DeploymentStatus),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Plan;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.Plan")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Plan, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut verdict__ = None;
                let mut plan_id__ = None;
                let mut workload__ = None;
                let mut phases__ = None;
                let mut pod_manifest__ = None;
                let mut node_name_pointers__ = None;
                let mut state__ = None;
                let mut requeue_after__ = None;
                let mut requeue_reason__ = None;
                let mut error__ = None;
                let mut daemon_set_status__ = None;
                let mut rollout__ = None;
                let mut deviations__ = None;
                let mut scope__ = None;
                let mut warnings__ = None;
                let mut more_warnings__ = None;
                let mut rollout_policy_uids__ = None;
                let mut status__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Verdict => {
                            if verdict__.is_some() {
                                return Err(serde::de::Error::duplicate_field("verdict"));
                            }
                            verdict__ = Some(map_.next_value::<Verdict>()? as i32);
                        }
                        GeneratedField::PlanId => {
                            if plan_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("planId"));
                            }
                            plan_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Workload => {
                            if workload__.is_some() {
                                return Err(serde::de::Error::duplicate_field("workload"));
                            }
                            workload__ = map_.next_value()?;
                        }
                        GeneratedField::Phases => {
                            if phases__.is_some() {
                                return Err(serde::de::Error::duplicate_field("phases"));
                            }
                            phases__ = Some(map_.next_value()?);
                        }
                        GeneratedField::PodManifest => {
                            if pod_manifest__.is_some() {
                                return Err(serde::de::Error::duplicate_field("podManifest"));
                            }
                            pod_manifest__ = 
                                Some(map_.next_value::<::pbjson::private::BytesDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::NodeNamePointers => {
                            if node_name_pointers__.is_some() {
                                return Err(serde::de::Error::duplicate_field("nodeNamePointers"));
                            }
                            node_name_pointers__ = Some(map_.next_value()?);
                        }
                        GeneratedField::State => {
                            if state__.is_some() {
                                return Err(serde::de::Error::duplicate_field("state"));
                            }
                            state__ = map_.next_value()?;
                        }
                        GeneratedField::RequeueAfter => {
                            if requeue_after__.is_some() {
                                return Err(serde::de::Error::duplicate_field("requeueAfter"));
                            }
                            requeue_after__ = map_.next_value()?;
                        }
                        GeneratedField::RequeueReason => {
                            if requeue_reason__.is_some() {
                                return Err(serde::de::Error::duplicate_field("requeueReason"));
                            }
                            requeue_reason__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Error => {
                            if error__.is_some() {
                                return Err(serde::de::Error::duplicate_field("error"));
                            }
                            error__ = Some(map_.next_value()?);
                        }
                        GeneratedField::DaemonSetStatus => {
                            if daemon_set_status__.is_some() {
                                return Err(serde::de::Error::duplicate_field("daemonSetStatus"));
                            }
                            daemon_set_status__ = map_.next_value()?;
                        }
                        GeneratedField::Rollout => {
                            if rollout__.is_some() {
                                return Err(serde::de::Error::duplicate_field("rollout"));
                            }
                            rollout__ = map_.next_value()?;
                        }
                        GeneratedField::Deviations => {
                            if deviations__.is_some() {
                                return Err(serde::de::Error::duplicate_field("deviations"));
                            }
                            deviations__ = Some(map_.next_value::<Vec<Deviation>>()?.into_iter().map(|x| x as i32).collect());
                        }
                        GeneratedField::Scope => {
                            if scope__.is_some() {
                                return Err(serde::de::Error::duplicate_field("scope"));
                            }
                            scope__ = Some(map_.next_value::<Scope>()? as i32);
                        }
                        GeneratedField::Warnings => {
                            if warnings__.is_some() {
                                return Err(serde::de::Error::duplicate_field("warnings"));
                            }
                            warnings__ = Some(map_.next_value()?);
                        }
                        GeneratedField::MoreWarnings => {
                            if more_warnings__.is_some() {
                                return Err(serde::de::Error::duplicate_field("moreWarnings"));
                            }
                            more_warnings__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::RolloutPolicyUids => {
                            if rollout_policy_uids__.is_some() {
                                return Err(serde::de::Error::duplicate_field("rolloutPolicyUids"));
                            }
                            rollout_policy_uids__ = Some(map_.next_value()?);
                        }
                        GeneratedField::ReplicaSetStatus => {
                            if status__.is_some() {
                                return Err(serde::de::Error::duplicate_field("replicaSetStatus"));
                            }
                            status__ = map_.next_value::<::std::option::Option<_>>()?.map(plan::Status::ReplicaSetStatus)
;
                        }
                        GeneratedField::DeploymentStatus => {
                            if status__.is_some() {
                                return Err(serde::de::Error::duplicate_field("deploymentStatus"));
                            }
                            status__ = map_.next_value::<::std::option::Option<_>>()?.map(plan::Status::DeploymentStatus)
;
                        }
                    }
                }
                Ok(Plan {
                    verdict: verdict__.unwrap_or_default(),
                    plan_id: plan_id__.unwrap_or_default(),
                    workload: workload__,
                    phases: phases__.unwrap_or_default(),
                    pod_manifest: pod_manifest__.unwrap_or_default(),
                    node_name_pointers: node_name_pointers__.unwrap_or_default(),
                    state: state__,
                    requeue_after: requeue_after__,
                    requeue_reason: requeue_reason__.unwrap_or_default(),
                    error: error__.unwrap_or_default(),
                    daemon_set_status: daemon_set_status__,
                    rollout: rollout__,
                    deviations: deviations__.unwrap_or_default(),
                    scope: scope__.unwrap_or_default(),
                    warnings: warnings__.unwrap_or_default(),
                    more_warnings: more_warnings__.unwrap_or_default(),
                    rollout_policy_uids: rollout_policy_uids__.unwrap_or_default(),
                    status: status__,
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.Plan", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for PlanOptions {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.profile != 0 {
            len += 1;
        }
        if !self.enabled_deviations.is_empty() {
            len += 1;
        }
        if !self.disabled_deviations.is_empty() {
            len += 1;
        }
        if !self.feature_gates.is_empty() {
            len += 1;
        }
        if self.burst.is_some() {
            len += 1;
        }
        if self.scope != 0 {
            len += 1;
        }
        if !self.disabled_feature_gates.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.PlanOptions", len)?;
        if self.profile != 0 {
            let v = Profile::try_from(self.profile)
                .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", self.profile)))?;
            struct_ser.serialize_field("profile", &v)?;
        }
        if !self.enabled_deviations.is_empty() {
            let v = self.enabled_deviations.iter().cloned().map(|v| {
                Deviation::try_from(v)
                    .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", v)))
                }).collect::<std::result::Result<Vec<_>, _>>()?;
            struct_ser.serialize_field("enabledDeviations", &v)?;
        }
        if !self.disabled_deviations.is_empty() {
            let v = self.disabled_deviations.iter().cloned().map(|v| {
                Deviation::try_from(v)
                    .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", v)))
                }).collect::<std::result::Result<Vec<_>, _>>()?;
            struct_ser.serialize_field("disabledDeviations", &v)?;
        }
        if !self.feature_gates.is_empty() {
            let v = self.feature_gates.iter().cloned().map(|v| {
                FeatureGate::try_from(v)
                    .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", v)))
                }).collect::<std::result::Result<Vec<_>, _>>()?;
            struct_ser.serialize_field("featureGates", &v)?;
        }
        if let Some(v) = self.burst.as_ref() {
            struct_ser.serialize_field("burst", v)?;
        }
        if self.scope != 0 {
            let v = Scope::try_from(self.scope)
                .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", self.scope)))?;
            struct_ser.serialize_field("scope", &v)?;
        }
        if !self.disabled_feature_gates.is_empty() {
            let v = self.disabled_feature_gates.iter().cloned().map(|v| {
                FeatureGate::try_from(v)
                    .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", v)))
                }).collect::<std::result::Result<Vec<_>, _>>()?;
            struct_ser.serialize_field("disabledFeatureGates", &v)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for PlanOptions {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "profile",
            "enabled_deviations",
            "enabledDeviations",
            "disabled_deviations",
            "disabledDeviations",
            "feature_gates",
            "featureGates",
            "burst",
            "scope",
            "disabled_feature_gates",
            "disabledFeatureGates",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Profile,
            EnabledDeviations,
            DisabledDeviations,
            FeatureGates,
            Burst,
            Scope,
            DisabledFeatureGates,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "profile" => Ok(GeneratedField::Profile),
                            "enabledDeviations" | "enabled_deviations" => Ok(GeneratedField::EnabledDeviations),
                            "disabledDeviations" | "disabled_deviations" => Ok(GeneratedField::DisabledDeviations),
                            "featureGates" | "feature_gates" => Ok(GeneratedField::FeatureGates),
                            "burst" => Ok(GeneratedField::Burst),
                            "scope" => Ok(GeneratedField::Scope),
                            "disabledFeatureGates" | "disabled_feature_gates" => Ok(GeneratedField::DisabledFeatureGates),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = PlanOptions;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.PlanOptions")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<PlanOptions, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut profile__ = None;
                let mut enabled_deviations__ = None;
                let mut disabled_deviations__ = None;
                let mut feature_gates__ = None;
                let mut burst__ = None;
                let mut scope__ = None;
                let mut disabled_feature_gates__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Profile => {
                            if profile__.is_some() {
                                return Err(serde::de::Error::duplicate_field("profile"));
                            }
                            profile__ = Some(map_.next_value::<Profile>()? as i32);
                        }
                        GeneratedField::EnabledDeviations => {
                            if enabled_deviations__.is_some() {
                                return Err(serde::de::Error::duplicate_field("enabledDeviations"));
                            }
                            enabled_deviations__ = Some(map_.next_value::<Vec<Deviation>>()?.into_iter().map(|x| x as i32).collect());
                        }
                        GeneratedField::DisabledDeviations => {
                            if disabled_deviations__.is_some() {
                                return Err(serde::de::Error::duplicate_field("disabledDeviations"));
                            }
                            disabled_deviations__ = Some(map_.next_value::<Vec<Deviation>>()?.into_iter().map(|x| x as i32).collect());
                        }
                        GeneratedField::FeatureGates => {
                            if feature_gates__.is_some() {
                                return Err(serde::de::Error::duplicate_field("featureGates"));
                            }
                            feature_gates__ = Some(map_.next_value::<Vec<FeatureGate>>()?.into_iter().map(|x| x as i32).collect());
                        }
                        GeneratedField::Burst => {
                            if burst__.is_some() {
                                return Err(serde::de::Error::duplicate_field("burst"));
                            }
                            burst__ = 
                                map_.next_value::<::std::option::Option<::pbjson::private::NumberDeserialize<_>>>()?.map(|x| x.0)
                            ;
                        }
                        GeneratedField::Scope => {
                            if scope__.is_some() {
                                return Err(serde::de::Error::duplicate_field("scope"));
                            }
                            scope__ = Some(map_.next_value::<Scope>()? as i32);
                        }
                        GeneratedField::DisabledFeatureGates => {
                            if disabled_feature_gates__.is_some() {
                                return Err(serde::de::Error::duplicate_field("disabledFeatureGates"));
                            }
                            disabled_feature_gates__ = Some(map_.next_value::<Vec<FeatureGate>>()?.into_iter().map(|x| x as i32).collect());
                        }
                    }
                }
                Ok(PlanOptions {
                    profile: profile__.unwrap_or_default(),
                    enabled_deviations: enabled_deviations__.unwrap_or_default(),
                    disabled_deviations: disabled_deviations__.unwrap_or_default(),
                    feature_gates: feature_gates__.unwrap_or_default(),
                    burst: burst__,
                    scope: scope__.unwrap_or_default(),
                    disabled_feature_gates: disabled_feature_gates__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.PlanOptions", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for PlanRequest {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.snapshot.is_some() {
            len += 1;
        }
        if self.options.is_some() {
            len += 1;
        }
        if !self.undelivered_reports.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.PlanRequest", len)?;
        if let Some(v) = self.snapshot.as_ref() {
            struct_ser.serialize_field("snapshot", v)?;
        }
        if let Some(v) = self.options.as_ref() {
            struct_ser.serialize_field("options", v)?;
        }
        if !self.undelivered_reports.is_empty() {
            struct_ser.serialize_field("undeliveredReports", &self.undelivered_reports)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for PlanRequest {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "snapshot",
            "options",
            "undelivered_reports",
            "undeliveredReports",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Snapshot,
            Options,
            UndeliveredReports,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "snapshot" => Ok(GeneratedField::Snapshot),
                            "options" => Ok(GeneratedField::Options),
                            "undeliveredReports" | "undelivered_reports" => Ok(GeneratedField::UndeliveredReports),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = PlanRequest;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.PlanRequest")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<PlanRequest, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut snapshot__ = None;
                let mut options__ = None;
                let mut undelivered_reports__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Snapshot => {
                            if snapshot__.is_some() {
                                return Err(serde::de::Error::duplicate_field("snapshot"));
                            }
                            snapshot__ = map_.next_value()?;
                        }
                        GeneratedField::Options => {
                            if options__.is_some() {
                                return Err(serde::de::Error::duplicate_field("options"));
                            }
                            options__ = map_.next_value()?;
                        }
                        GeneratedField::UndeliveredReports => {
                            if undelivered_reports__.is_some() {
                                return Err(serde::de::Error::duplicate_field("undeliveredReports"));
                            }
                            undelivered_reports__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(PlanRequest {
                    snapshot: snapshot__,
                    options: options__,
                    undelivered_reports: undelivered_reports__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.PlanRequest", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for PlanResponse {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.plan.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.PlanResponse", len)?;
        if let Some(v) = self.plan.as_ref() {
            struct_ser.serialize_field("plan", v)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for PlanResponse {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "plan",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Plan,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "plan" => Ok(GeneratedField::Plan),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = PlanResponse;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.PlanResponse")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<PlanResponse, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut plan__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Plan => {
                            if plan__.is_some() {
                                return Err(serde::de::Error::duplicate_field("plan"));
                            }
                            plan__ = map_.next_value()?;
                        }
                    }
                }
                Ok(PlanResponse {
                    plan: plan__,
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.PlanResponse", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for PlanStreamRequest {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.id.is_empty() {
            len += 1;
        }
        if self.request.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.PlanStreamRequest", len)?;
        if !self.id.is_empty() {
            struct_ser.serialize_field("id", &self.id)?;
        }
        if let Some(v) = self.request.as_ref() {
            struct_ser.serialize_field("request", v)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for PlanStreamRequest {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "id",
            "request",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Id,
            Request,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "id" => Ok(GeneratedField::Id),
                            "request" => Ok(GeneratedField::Request),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = PlanStreamRequest;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.PlanStreamRequest")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<PlanStreamRequest, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut id__ = None;
                let mut request__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Id => {
                            if id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("id"));
                            }
                            id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Request => {
                            if request__.is_some() {
                                return Err(serde::de::Error::duplicate_field("request"));
                            }
                            request__ = map_.next_value()?;
                        }
                    }
                }
                Ok(PlanStreamRequest {
                    id: id__.unwrap_or_default(),
                    request: request__,
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.PlanStreamRequest", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for PlanStreamResponse {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.id.is_empty() {
            len += 1;
        }
        if self.result.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.PlanStreamResponse", len)?;
        if !self.id.is_empty() {
            struct_ser.serialize_field("id", &self.id)?;
        }
        if let Some(v) = self.result.as_ref() {
            match v {
                plan_stream_response::Result::Response(v) => {
                    struct_ser.serialize_field("response", v)?;
                }
                plan_stream_response::Result::Error(v) => {
                    struct_ser.serialize_field("error", v)?;
                }
            }
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for PlanStreamResponse {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "id",
            "response",
            "error",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Id,
            Response,
            Error,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "id" => Ok(GeneratedField::Id),
                            "response" => Ok(GeneratedField::Response),
                            "error" => Ok(GeneratedField::Error),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = PlanStreamResponse;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.PlanStreamResponse")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<PlanStreamResponse, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut id__ = None;
                let mut result__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Id => {
                            if id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("id"));
                            }
                            id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Response => {
                            if result__.is_some() {
                                return Err(serde::de::Error::duplicate_field("response"));
                            }
                            result__ = map_.next_value::<::std::option::Option<_>>()?.map(plan_stream_response::Result::Response)
;
                        }
                        GeneratedField::Error => {
                            if result__.is_some() {
                                return Err(serde::de::Error::duplicate_field("error"));
                            }
                            result__ = map_.next_value::<::std::option::Option<_>>()?.map(plan_stream_response::Result::Error)
;
                        }
                    }
                }
                Ok(PlanStreamResponse {
                    id: id__.unwrap_or_default(),
                    result: result__,
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.PlanStreamResponse", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Pod {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.name.is_empty() {
            len += 1;
        }
        if !self.uid.is_empty() {
            len += 1;
        }
        if !self.labels.is_empty() {
            len += 1;
        }
        if self.controller.is_some() {
            len += 1;
        }
        if !self.node_name.is_empty() {
            len += 1;
        }
        if !self.target_node_name.is_empty() {
            len += 1;
        }
        if self.phase != 0 {
            len += 1;
        }
        if self.ready != 0 {
            len += 1;
        }
        if self.ready_transition_time.is_some() {
            len += 1;
        }
        if self.creation_time.is_some() {
            len += 1;
        }
        if self.deletion_time.is_some() {
            len += 1;
        }
        if self.has_finalizers {
            len += 1;
        }
        if self.shared_metadata != 0 {
            len += 1;
        }
        if !self.deletion_cost.is_empty() {
            len += 1;
        }
        if self.restarts != 0 {
            len += 1;
        }
        if self.sidecar_restarts != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.Pod", len)?;
        if !self.name.is_empty() {
            struct_ser.serialize_field("name", &self.name)?;
        }
        if !self.uid.is_empty() {
            struct_ser.serialize_field("uid", &self.uid)?;
        }
        if !self.labels.is_empty() {
            struct_ser.serialize_field("labels", &self.labels)?;
        }
        if let Some(v) = self.controller.as_ref() {
            struct_ser.serialize_field("controller", v)?;
        }
        if !self.node_name.is_empty() {
            struct_ser.serialize_field("nodeName", &self.node_name)?;
        }
        if !self.target_node_name.is_empty() {
            struct_ser.serialize_field("targetNodeName", &self.target_node_name)?;
        }
        if self.phase != 0 {
            let v = PodPhase::try_from(self.phase)
                .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", self.phase)))?;
            struct_ser.serialize_field("phase", &v)?;
        }
        if self.ready != 0 {
            let v = ConditionStatus::try_from(self.ready)
                .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", self.ready)))?;
            struct_ser.serialize_field("ready", &v)?;
        }
        if let Some(v) = self.ready_transition_time.as_ref() {
            struct_ser.serialize_field("readyTransitionTime", v)?;
        }
        if let Some(v) = self.creation_time.as_ref() {
            struct_ser.serialize_field("creationTime", v)?;
        }
        if let Some(v) = self.deletion_time.as_ref() {
            struct_ser.serialize_field("deletionTime", v)?;
        }
        if self.has_finalizers {
            struct_ser.serialize_field("hasFinalizers", &self.has_finalizers)?;
        }
        if self.shared_metadata != 0 {
            struct_ser.serialize_field("sharedMetadata", &self.shared_metadata)?;
        }
        if !self.deletion_cost.is_empty() {
            struct_ser.serialize_field("deletionCost", &self.deletion_cost)?;
        }
        if self.restarts != 0 {
            struct_ser.serialize_field("restarts", &self.restarts)?;
        }
        if self.sidecar_restarts != 0 {
            struct_ser.serialize_field("sidecarRestarts", &self.sidecar_restarts)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Pod {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "name",
            "uid",
            "labels",
            "controller",
            "node_name",
            "nodeName",
            "target_node_name",
            "targetNodeName",
            "phase",
            "ready",
            "ready_transition_time",
            "readyTransitionTime",
            "creation_time",
            "creationTime",
            "deletion_time",
            "deletionTime",
            "has_finalizers",
            "hasFinalizers",
            "shared_metadata",
            "sharedMetadata",
            "deletion_cost",
            "deletionCost",
            "restarts",
            "sidecar_restarts",
            "sidecarRestarts",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Name,
            Uid,
            Labels,
            Controller,
            NodeName,
            TargetNodeName,
            Phase,
            Ready,
            ReadyTransitionTime,
            CreationTime,
            DeletionTime,
            HasFinalizers,
            SharedMetadata,
            DeletionCost,
            Restarts,
            SidecarRestarts,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "name" => Ok(GeneratedField::Name),
                            "uid" => Ok(GeneratedField::Uid),
                            "labels" => Ok(GeneratedField::Labels),
                            "controller" => Ok(GeneratedField::Controller),
                            "nodeName" | "node_name" => Ok(GeneratedField::NodeName),
                            "targetNodeName" | "target_node_name" => Ok(GeneratedField::TargetNodeName),
                            "phase" => Ok(GeneratedField::Phase),
                            "ready" => Ok(GeneratedField::Ready),
                            "readyTransitionTime" | "ready_transition_time" => Ok(GeneratedField::ReadyTransitionTime),
                            "creationTime" | "creation_time" => Ok(GeneratedField::CreationTime),
                            "deletionTime" | "deletion_time" => Ok(GeneratedField::DeletionTime),
                            "hasFinalizers" | "has_finalizers" => Ok(GeneratedField::HasFinalizers),
                            "sharedMetadata" | "shared_metadata" => Ok(GeneratedField::SharedMetadata),
                            "deletionCost" | "deletion_cost" => Ok(GeneratedField::DeletionCost),
                            "restarts" => Ok(GeneratedField::Restarts),
                            "sidecarRestarts" | "sidecar_restarts" => Ok(GeneratedField::SidecarRestarts),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Pod;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.Pod")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Pod, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut name__ = None;
                let mut uid__ = None;
                let mut labels__ = None;
                let mut controller__ = None;
                let mut node_name__ = None;
                let mut target_node_name__ = None;
                let mut phase__ = None;
                let mut ready__ = None;
                let mut ready_transition_time__ = None;
                let mut creation_time__ = None;
                let mut deletion_time__ = None;
                let mut has_finalizers__ = None;
                let mut shared_metadata__ = None;
                let mut deletion_cost__ = None;
                let mut restarts__ = None;
                let mut sidecar_restarts__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Name => {
                            if name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("name"));
                            }
                            name__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Uid => {
                            if uid__.is_some() {
                                return Err(serde::de::Error::duplicate_field("uid"));
                            }
                            uid__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Labels => {
                            if labels__.is_some() {
                                return Err(serde::de::Error::duplicate_field("labels"));
                            }
                            labels__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Controller => {
                            if controller__.is_some() {
                                return Err(serde::de::Error::duplicate_field("controller"));
                            }
                            controller__ = map_.next_value()?;
                        }
                        GeneratedField::NodeName => {
                            if node_name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("nodeName"));
                            }
                            node_name__ = Some(map_.next_value()?);
                        }
                        GeneratedField::TargetNodeName => {
                            if target_node_name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("targetNodeName"));
                            }
                            target_node_name__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Phase => {
                            if phase__.is_some() {
                                return Err(serde::de::Error::duplicate_field("phase"));
                            }
                            phase__ = Some(map_.next_value::<PodPhase>()? as i32);
                        }
                        GeneratedField::Ready => {
                            if ready__.is_some() {
                                return Err(serde::de::Error::duplicate_field("ready"));
                            }
                            ready__ = Some(map_.next_value::<ConditionStatus>()? as i32);
                        }
                        GeneratedField::ReadyTransitionTime => {
                            if ready_transition_time__.is_some() {
                                return Err(serde::de::Error::duplicate_field("readyTransitionTime"));
                            }
                            ready_transition_time__ = map_.next_value()?;
                        }
                        GeneratedField::CreationTime => {
                            if creation_time__.is_some() {
                                return Err(serde::de::Error::duplicate_field("creationTime"));
                            }
                            creation_time__ = map_.next_value()?;
                        }
                        GeneratedField::DeletionTime => {
                            if deletion_time__.is_some() {
                                return Err(serde::de::Error::duplicate_field("deletionTime"));
                            }
                            deletion_time__ = map_.next_value()?;
                        }
                        GeneratedField::HasFinalizers => {
                            if has_finalizers__.is_some() {
                                return Err(serde::de::Error::duplicate_field("hasFinalizers"));
                            }
                            has_finalizers__ = Some(map_.next_value()?);
                        }
                        GeneratedField::SharedMetadata => {
                            if shared_metadata__.is_some() {
                                return Err(serde::de::Error::duplicate_field("sharedMetadata"));
                            }
                            shared_metadata__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::DeletionCost => {
                            if deletion_cost__.is_some() {
                                return Err(serde::de::Error::duplicate_field("deletionCost"));
                            }
                            deletion_cost__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Restarts => {
                            if restarts__.is_some() {
                                return Err(serde::de::Error::duplicate_field("restarts"));
                            }
                            restarts__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::SidecarRestarts => {
                            if sidecar_restarts__.is_some() {
                                return Err(serde::de::Error::duplicate_field("sidecarRestarts"));
                            }
                            sidecar_restarts__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                    }
                }
                Ok(Pod {
                    name: name__.unwrap_or_default(),
                    uid: uid__.unwrap_or_default(),
                    labels: labels__.unwrap_or_default(),
                    controller: controller__,
                    node_name: node_name__.unwrap_or_default(),
                    target_node_name: target_node_name__.unwrap_or_default(),
                    phase: phase__.unwrap_or_default(),
                    ready: ready__.unwrap_or_default(),
                    ready_transition_time: ready_transition_time__,
                    creation_time: creation_time__,
                    deletion_time: deletion_time__,
                    has_finalizers: has_finalizers__.unwrap_or_default(),
                    shared_metadata: shared_metadata__.unwrap_or_default(),
                    deletion_cost: deletion_cost__.unwrap_or_default(),
                    restarts: restarts__.unwrap_or_default(),
                    sidecar_restarts: sidecar_restarts__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.Pod", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for PodBucket {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.pods.is_empty() {
            len += 1;
        }
        if !self.shared_metadata.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.PodBucket", len)?;
        if !self.pods.is_empty() {
            struct_ser.serialize_field("pods", &self.pods)?;
        }
        if !self.shared_metadata.is_empty() {
            struct_ser.serialize_field("sharedMetadata", &self.shared_metadata)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for PodBucket {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "pods",
            "shared_metadata",
            "sharedMetadata",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Pods,
            SharedMetadata,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "pods" => Ok(GeneratedField::Pods),
                            "sharedMetadata" | "shared_metadata" => Ok(GeneratedField::SharedMetadata),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = PodBucket;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.PodBucket")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<PodBucket, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut pods__ = None;
                let mut shared_metadata__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Pods => {
                            if pods__.is_some() {
                                return Err(serde::de::Error::duplicate_field("pods"));
                            }
                            pods__ = Some(map_.next_value()?);
                        }
                        GeneratedField::SharedMetadata => {
                            if shared_metadata__.is_some() {
                                return Err(serde::de::Error::duplicate_field("sharedMetadata"));
                            }
                            shared_metadata__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(PodBucket {
                    pods: pods__.unwrap_or_default(),
                    shared_metadata: shared_metadata__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.PodBucket", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for PodExplanation {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.pod_name.is_empty() {
            len += 1;
        }
        if self.updated {
            len += 1;
        }
        if self.ready {
            len += 1;
        }
        if self.available {
            len += 1;
        }
        if self.deleting {
            len += 1;
        }
        if self.phase != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.PodExplanation", len)?;
        if !self.pod_name.is_empty() {
            struct_ser.serialize_field("podName", &self.pod_name)?;
        }
        if self.updated {
            struct_ser.serialize_field("updated", &self.updated)?;
        }
        if self.ready {
            struct_ser.serialize_field("ready", &self.ready)?;
        }
        if self.available {
            struct_ser.serialize_field("available", &self.available)?;
        }
        if self.deleting {
            struct_ser.serialize_field("deleting", &self.deleting)?;
        }
        if self.phase != 0 {
            let v = PodPhase::try_from(self.phase)
                .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", self.phase)))?;
            struct_ser.serialize_field("phase", &v)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for PodExplanation {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "pod_name",
            "podName",
            "updated",
            "ready",
            "available",
            "deleting",
            "phase",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            PodName,
            Updated,
            Ready,
            Available,
            Deleting,
            Phase,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "podName" | "pod_name" => Ok(GeneratedField::PodName),
                            "updated" => Ok(GeneratedField::Updated),
                            "ready" => Ok(GeneratedField::Ready),
                            "available" => Ok(GeneratedField::Available),
                            "deleting" => Ok(GeneratedField::Deleting),
                            "phase" => Ok(GeneratedField::Phase),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = PodExplanation;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.PodExplanation")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<PodExplanation, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut pod_name__ = None;
                let mut updated__ = None;
                let mut ready__ = None;
                let mut available__ = None;
                let mut deleting__ = None;
                let mut phase__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::PodName => {
                            if pod_name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("podName"));
                            }
                            pod_name__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Updated => {
                            if updated__.is_some() {
                                return Err(serde::de::Error::duplicate_field("updated"));
                            }
                            updated__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Ready => {
                            if ready__.is_some() {
                                return Err(serde::de::Error::duplicate_field("ready"));
                            }
                            ready__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Available => {
                            if available__.is_some() {
                                return Err(serde::de::Error::duplicate_field("available"));
                            }
                            available__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Deleting => {
                            if deleting__.is_some() {
                                return Err(serde::de::Error::duplicate_field("deleting"));
                            }
                            deleting__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Phase => {
                            if phase__.is_some() {
                                return Err(serde::de::Error::duplicate_field("phase"));
                            }
                            phase__ = Some(map_.next_value::<PodPhase>()? as i32);
                        }
                    }
                }
                Ok(PodExplanation {
                    pod_name: pod_name__.unwrap_or_default(),
                    updated: updated__.unwrap_or_default(),
                    ready: ready__.unwrap_or_default(),
                    available: available__.unwrap_or_default(),
                    deleting: deleting__.unwrap_or_default(),
                    phase: phase__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.PodExplanation", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for PodNameCollision {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.node_name.is_empty() {
            len += 1;
        }
        if self.count != 0 {
            len += 1;
        }
        if self.refused_count != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.PodNameCollision", len)?;
        if !self.node_name.is_empty() {
            struct_ser.serialize_field("nodeName", &self.node_name)?;
        }
        if self.count != 0 {
            struct_ser.serialize_field("count", &self.count)?;
        }
        if self.refused_count != 0 {
            struct_ser.serialize_field("refusedCount", &self.refused_count)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for PodNameCollision {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "node_name",
            "nodeName",
            "count",
            "refused_count",
            "refusedCount",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            NodeName,
            Count,
            RefusedCount,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "nodeName" | "node_name" => Ok(GeneratedField::NodeName),
                            "count" => Ok(GeneratedField::Count),
                            "refusedCount" | "refused_count" => Ok(GeneratedField::RefusedCount),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = PodNameCollision;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.PodNameCollision")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<PodNameCollision, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut node_name__ = None;
                let mut count__ = None;
                let mut refused_count__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::NodeName => {
                            if node_name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("nodeName"));
                            }
                            node_name__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Count => {
                            if count__.is_some() {
                                return Err(serde::de::Error::duplicate_field("count"));
                            }
                            count__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::RefusedCount => {
                            if refused_count__.is_some() {
                                return Err(serde::de::Error::duplicate_field("refusedCount"));
                            }
                            refused_count__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                    }
                }
                Ok(PodNameCollision {
                    node_name: node_name__.unwrap_or_default(),
                    count: count__.unwrap_or_default(),
                    refused_count: refused_count__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.PodNameCollision", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for PodPhase {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        let variant = match self {
            Self::Unspecified => "POD_PHASE_UNSPECIFIED",
            Self::Pending => "POD_PHASE_PENDING",
            Self::Running => "POD_PHASE_RUNNING",
            Self::Succeeded => "POD_PHASE_SUCCEEDED",
            Self::Failed => "POD_PHASE_FAILED",
            Self::Unknown => "POD_PHASE_UNKNOWN",
        };
        serializer.serialize_str(variant)
    }
}
impl<'de> serde::Deserialize<'de> for PodPhase {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "POD_PHASE_UNSPECIFIED",
            "POD_PHASE_PENDING",
            "POD_PHASE_RUNNING",
            "POD_PHASE_SUCCEEDED",
            "POD_PHASE_FAILED",
            "POD_PHASE_UNKNOWN",
        ];

        struct GeneratedVisitor;

        impl serde::de::Visitor<'_> for GeneratedVisitor {
            type Value = PodPhase;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(formatter, "expected one of: {:?}", &FIELDS)
            }

            fn visit_i64<E>(self, v: i64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Signed(v), &self)
                    })
            }

            fn visit_u64<E>(self, v: u64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Unsigned(v), &self)
                    })
            }

            fn visit_str<E>(self, value: &str) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                match value {
                    "POD_PHASE_UNSPECIFIED" => Ok(PodPhase::Unspecified),
                    "POD_PHASE_PENDING" => Ok(PodPhase::Pending),
                    "POD_PHASE_RUNNING" => Ok(PodPhase::Running),
                    "POD_PHASE_SUCCEEDED" => Ok(PodPhase::Succeeded),
                    "POD_PHASE_FAILED" => Ok(PodPhase::Failed),
                    "POD_PHASE_UNKNOWN" => Ok(PodPhase::Unknown),
                    _ => Err(serde::de::Error::unknown_variant(value, FIELDS)),
                }
            }
        }
        deserializer.deserialize_any(GeneratedVisitor)
    }
}
impl serde::Serialize for PodProblem {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.reason.is_empty() {
            len += 1;
        }
        if !self.message.is_empty() {
            len += 1;
        }
        if !self.container.is_empty() {
            len += 1;
        }
        if self.restarts != 0 {
            len += 1;
        }
        if !self.last_exit.is_empty() {
            len += 1;
        }
        if self.is_failing {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.PodProblem", len)?;
        if !self.reason.is_empty() {
            struct_ser.serialize_field("reason", &self.reason)?;
        }
        if !self.message.is_empty() {
            struct_ser.serialize_field("message", &self.message)?;
        }
        if !self.container.is_empty() {
            struct_ser.serialize_field("container", &self.container)?;
        }
        if self.restarts != 0 {
            struct_ser.serialize_field("restarts", &self.restarts)?;
        }
        if !self.last_exit.is_empty() {
            struct_ser.serialize_field("lastExit", &self.last_exit)?;
        }
        if self.is_failing {
            struct_ser.serialize_field("isFailing", &self.is_failing)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for PodProblem {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "reason",
            "message",
            "container",
            "restarts",
            "last_exit",
            "lastExit",
            "is_failing",
            "isFailing",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Reason,
            Message,
            Container,
            Restarts,
            LastExit,
            IsFailing,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "reason" => Ok(GeneratedField::Reason),
                            "message" => Ok(GeneratedField::Message),
                            "container" => Ok(GeneratedField::Container),
                            "restarts" => Ok(GeneratedField::Restarts),
                            "lastExit" | "last_exit" => Ok(GeneratedField::LastExit),
                            "isFailing" | "is_failing" => Ok(GeneratedField::IsFailing),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = PodProblem;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.PodProblem")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<PodProblem, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut reason__ = None;
                let mut message__ = None;
                let mut container__ = None;
                let mut restarts__ = None;
                let mut last_exit__ = None;
                let mut is_failing__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Reason => {
                            if reason__.is_some() {
                                return Err(serde::de::Error::duplicate_field("reason"));
                            }
                            reason__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Message => {
                            if message__.is_some() {
                                return Err(serde::de::Error::duplicate_field("message"));
                            }
                            message__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Container => {
                            if container__.is_some() {
                                return Err(serde::de::Error::duplicate_field("container"));
                            }
                            container__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Restarts => {
                            if restarts__.is_some() {
                                return Err(serde::de::Error::duplicate_field("restarts"));
                            }
                            restarts__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::LastExit => {
                            if last_exit__.is_some() {
                                return Err(serde::de::Error::duplicate_field("lastExit"));
                            }
                            last_exit__ = Some(map_.next_value()?);
                        }
                        GeneratedField::IsFailing => {
                            if is_failing__.is_some() {
                                return Err(serde::de::Error::duplicate_field("isFailing"));
                            }
                            is_failing__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(PodProblem {
                    reason: reason__.unwrap_or_default(),
                    message: message__.unwrap_or_default(),
                    container: container__.unwrap_or_default(),
                    restarts: restarts__.unwrap_or_default(),
                    last_exit: last_exit__.unwrap_or_default(),
                    is_failing: is_failing__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.PodProblem", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for PodStatus {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.pod_name.is_empty() {
            len += 1;
        }
        if !self.node_name.is_empty() {
            len += 1;
        }
        if self.updated {
            len += 1;
        }
        if self.ready {
            len += 1;
        }
        if self.available {
            len += 1;
        }
        if self.created_at.is_some() {
            len += 1;
        }
        if self.not_ready_since.is_some() {
            len += 1;
        }
        if self.deleted_at.is_some() {
            len += 1;
        }
        if !self.finalizers.is_empty() {
            len += 1;
        }
        if self.problem.is_some() {
            len += 1;
        }
        if self.unit_state != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.PodStatus", len)?;
        if !self.pod_name.is_empty() {
            struct_ser.serialize_field("podName", &self.pod_name)?;
        }
        if !self.node_name.is_empty() {
            struct_ser.serialize_field("nodeName", &self.node_name)?;
        }
        if self.updated {
            struct_ser.serialize_field("updated", &self.updated)?;
        }
        if self.ready {
            struct_ser.serialize_field("ready", &self.ready)?;
        }
        if self.available {
            struct_ser.serialize_field("available", &self.available)?;
        }
        if let Some(v) = self.created_at.as_ref() {
            struct_ser.serialize_field("createdAt", v)?;
        }
        if let Some(v) = self.not_ready_since.as_ref() {
            struct_ser.serialize_field("notReadySince", v)?;
        }
        if let Some(v) = self.deleted_at.as_ref() {
            struct_ser.serialize_field("deletedAt", v)?;
        }
        if !self.finalizers.is_empty() {
            struct_ser.serialize_field("finalizers", &self.finalizers)?;
        }
        if let Some(v) = self.problem.as_ref() {
            struct_ser.serialize_field("problem", v)?;
        }
        if self.unit_state != 0 {
            let v = UnitState::try_from(self.unit_state)
                .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", self.unit_state)))?;
            struct_ser.serialize_field("unitState", &v)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for PodStatus {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "pod_name",
            "podName",
            "node_name",
            "nodeName",
            "updated",
            "ready",
            "available",
            "created_at",
            "createdAt",
            "not_ready_since",
            "notReadySince",
            "deleted_at",
            "deletedAt",
            "finalizers",
            "problem",
            "unit_state",
            "unitState",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            PodName,
            NodeName,
            Updated,
            Ready,
            Available,
            CreatedAt,
            NotReadySince,
            DeletedAt,
            Finalizers,
            Problem,
            UnitState,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "podName" | "pod_name" => Ok(GeneratedField::PodName),
                            "nodeName" | "node_name" => Ok(GeneratedField::NodeName),
                            "updated" => Ok(GeneratedField::Updated),
                            "ready" => Ok(GeneratedField::Ready),
                            "available" => Ok(GeneratedField::Available),
                            "createdAt" | "created_at" => Ok(GeneratedField::CreatedAt),
                            "notReadySince" | "not_ready_since" => Ok(GeneratedField::NotReadySince),
                            "deletedAt" | "deleted_at" => Ok(GeneratedField::DeletedAt),
                            "finalizers" => Ok(GeneratedField::Finalizers),
                            "problem" => Ok(GeneratedField::Problem),
                            "unitState" | "unit_state" => Ok(GeneratedField::UnitState),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = PodStatus;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.PodStatus")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<PodStatus, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut pod_name__ = None;
                let mut node_name__ = None;
                let mut updated__ = None;
                let mut ready__ = None;
                let mut available__ = None;
                let mut created_at__ = None;
                let mut not_ready_since__ = None;
                let mut deleted_at__ = None;
                let mut finalizers__ = None;
                let mut problem__ = None;
                let mut unit_state__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::PodName => {
                            if pod_name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("podName"));
                            }
                            pod_name__ = Some(map_.next_value()?);
                        }
                        GeneratedField::NodeName => {
                            if node_name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("nodeName"));
                            }
                            node_name__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Updated => {
                            if updated__.is_some() {
                                return Err(serde::de::Error::duplicate_field("updated"));
                            }
                            updated__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Ready => {
                            if ready__.is_some() {
                                return Err(serde::de::Error::duplicate_field("ready"));
                            }
                            ready__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Available => {
                            if available__.is_some() {
                                return Err(serde::de::Error::duplicate_field("available"));
                            }
                            available__ = Some(map_.next_value()?);
                        }
                        GeneratedField::CreatedAt => {
                            if created_at__.is_some() {
                                return Err(serde::de::Error::duplicate_field("createdAt"));
                            }
                            created_at__ = map_.next_value()?;
                        }
                        GeneratedField::NotReadySince => {
                            if not_ready_since__.is_some() {
                                return Err(serde::de::Error::duplicate_field("notReadySince"));
                            }
                            not_ready_since__ = map_.next_value()?;
                        }
                        GeneratedField::DeletedAt => {
                            if deleted_at__.is_some() {
                                return Err(serde::de::Error::duplicate_field("deletedAt"));
                            }
                            deleted_at__ = map_.next_value()?;
                        }
                        GeneratedField::Finalizers => {
                            if finalizers__.is_some() {
                                return Err(serde::de::Error::duplicate_field("finalizers"));
                            }
                            finalizers__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Problem => {
                            if problem__.is_some() {
                                return Err(serde::de::Error::duplicate_field("problem"));
                            }
                            problem__ = map_.next_value()?;
                        }
                        GeneratedField::UnitState => {
                            if unit_state__.is_some() {
                                return Err(serde::de::Error::duplicate_field("unitState"));
                            }
                            unit_state__ = Some(map_.next_value::<UnitState>()? as i32);
                        }
                    }
                }
                Ok(PodStatus {
                    pod_name: pod_name__.unwrap_or_default(),
                    node_name: node_name__.unwrap_or_default(),
                    updated: updated__.unwrap_or_default(),
                    ready: ready__.unwrap_or_default(),
                    available: available__.unwrap_or_default(),
                    created_at: created_at__,
                    not_ready_since: not_ready_since__,
                    deleted_at: deleted_at__,
                    finalizers: finalizers__.unwrap_or_default(),
                    problem: problem__,
                    unit_state: unit_state__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.PodStatus", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for PolicyApproval {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.stage.is_empty() {
            len += 1;
        }
        if self.nodes != 0 {
            len += 1;
        }
        if !self.digest.is_empty() {
            len += 1;
        }
        if self.since.is_some() {
            len += 1;
        }
        if !self.outdated_digest.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.PolicyApproval", len)?;
        if !self.stage.is_empty() {
            struct_ser.serialize_field("stage", &self.stage)?;
        }
        if self.nodes != 0 {
            struct_ser.serialize_field("nodes", &self.nodes)?;
        }
        if !self.digest.is_empty() {
            struct_ser.serialize_field("digest", &self.digest)?;
        }
        if let Some(v) = self.since.as_ref() {
            struct_ser.serialize_field("since", v)?;
        }
        if !self.outdated_digest.is_empty() {
            struct_ser.serialize_field("outdatedDigest", &self.outdated_digest)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for PolicyApproval {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "stage",
            "nodes",
            "digest",
            "since",
            "outdated_digest",
            "outdatedDigest",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Stage,
            Nodes,
            Digest,
            Since,
            OutdatedDigest,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "stage" => Ok(GeneratedField::Stage),
                            "nodes" => Ok(GeneratedField::Nodes),
                            "digest" => Ok(GeneratedField::Digest),
                            "since" => Ok(GeneratedField::Since),
                            "outdatedDigest" | "outdated_digest" => Ok(GeneratedField::OutdatedDigest),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = PolicyApproval;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.PolicyApproval")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<PolicyApproval, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut stage__ = None;
                let mut nodes__ = None;
                let mut digest__ = None;
                let mut since__ = None;
                let mut outdated_digest__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Stage => {
                            if stage__.is_some() {
                                return Err(serde::de::Error::duplicate_field("stage"));
                            }
                            stage__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Nodes => {
                            if nodes__.is_some() {
                                return Err(serde::de::Error::duplicate_field("nodes"));
                            }
                            nodes__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Digest => {
                            if digest__.is_some() {
                                return Err(serde::de::Error::duplicate_field("digest"));
                            }
                            digest__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Since => {
                            if since__.is_some() {
                                return Err(serde::de::Error::duplicate_field("since"));
                            }
                            since__ = map_.next_value()?;
                        }
                        GeneratedField::OutdatedDigest => {
                            if outdated_digest__.is_some() {
                                return Err(serde::de::Error::duplicate_field("outdatedDigest"));
                            }
                            outdated_digest__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(PolicyApproval {
                    stage: stage__.unwrap_or_default(),
                    nodes: nodes__.unwrap_or_default(),
                    digest: digest__.unwrap_or_default(),
                    since: since__,
                    outdated_digest: outdated_digest__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.PolicyApproval", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for PolicyCheck {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.name.is_empty() {
            len += 1;
        }
        if self.measurements != 0 {
            len += 1;
        }
        if self.count != 0 {
            len += 1;
        }
        if self.successful != 0 {
            len += 1;
        }
        if self.failed != 0 {
            len += 1;
        }
        if self.failure_limit != 0 {
            len += 1;
        }
        if self.inconclusive != 0 {
            len += 1;
        }
        if self.errors != 0 {
            len += 1;
        }
        if self.at.is_some() {
            len += 1;
        }
        if !self.value.is_empty() {
            len += 1;
        }
        if !self.message.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.PolicyCheck", len)?;
        if !self.name.is_empty() {
            struct_ser.serialize_field("name", &self.name)?;
        }
        if self.measurements != 0 {
            struct_ser.serialize_field("measurements", &self.measurements)?;
        }
        if self.count != 0 {
            struct_ser.serialize_field("count", &self.count)?;
        }
        if self.successful != 0 {
            struct_ser.serialize_field("successful", &self.successful)?;
        }
        if self.failed != 0 {
            struct_ser.serialize_field("failed", &self.failed)?;
        }
        if self.failure_limit != 0 {
            struct_ser.serialize_field("failureLimit", &self.failure_limit)?;
        }
        if self.inconclusive != 0 {
            struct_ser.serialize_field("inconclusive", &self.inconclusive)?;
        }
        if self.errors != 0 {
            struct_ser.serialize_field("errors", &self.errors)?;
        }
        if let Some(v) = self.at.as_ref() {
            struct_ser.serialize_field("at", v)?;
        }
        if !self.value.is_empty() {
            struct_ser.serialize_field("value", &self.value)?;
        }
        if !self.message.is_empty() {
            struct_ser.serialize_field("message", &self.message)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for PolicyCheck {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "name",
            "measurements",
            "count",
            "successful",
            "failed",
            "failure_limit",
            "failureLimit",
            "inconclusive",
            "errors",
            "at",
            "value",
            "message",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Name,
            Measurements,
            Count,
            Successful,
            Failed,
            FailureLimit,
            Inconclusive,
            Errors,
            At,
            Value,
            Message,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "name" => Ok(GeneratedField::Name),
                            "measurements" => Ok(GeneratedField::Measurements),
                            "count" => Ok(GeneratedField::Count),
                            "successful" => Ok(GeneratedField::Successful),
                            "failed" => Ok(GeneratedField::Failed),
                            "failureLimit" | "failure_limit" => Ok(GeneratedField::FailureLimit),
                            "inconclusive" => Ok(GeneratedField::Inconclusive),
                            "errors" => Ok(GeneratedField::Errors),
                            "at" => Ok(GeneratedField::At),
                            "value" => Ok(GeneratedField::Value),
                            "message" => Ok(GeneratedField::Message),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = PolicyCheck;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.PolicyCheck")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<PolicyCheck, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut name__ = None;
                let mut measurements__ = None;
                let mut count__ = None;
                let mut successful__ = None;
                let mut failed__ = None;
                let mut failure_limit__ = None;
                let mut inconclusive__ = None;
                let mut errors__ = None;
                let mut at__ = None;
                let mut value__ = None;
                let mut message__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Name => {
                            if name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("name"));
                            }
                            name__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Measurements => {
                            if measurements__.is_some() {
                                return Err(serde::de::Error::duplicate_field("measurements"));
                            }
                            measurements__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Count => {
                            if count__.is_some() {
                                return Err(serde::de::Error::duplicate_field("count"));
                            }
                            count__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Successful => {
                            if successful__.is_some() {
                                return Err(serde::de::Error::duplicate_field("successful"));
                            }
                            successful__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Failed => {
                            if failed__.is_some() {
                                return Err(serde::de::Error::duplicate_field("failed"));
                            }
                            failed__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::FailureLimit => {
                            if failure_limit__.is_some() {
                                return Err(serde::de::Error::duplicate_field("failureLimit"));
                            }
                            failure_limit__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Inconclusive => {
                            if inconclusive__.is_some() {
                                return Err(serde::de::Error::duplicate_field("inconclusive"));
                            }
                            inconclusive__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Errors => {
                            if errors__.is_some() {
                                return Err(serde::de::Error::duplicate_field("errors"));
                            }
                            errors__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::At => {
                            if at__.is_some() {
                                return Err(serde::de::Error::duplicate_field("at"));
                            }
                            at__ = map_.next_value()?;
                        }
                        GeneratedField::Value => {
                            if value__.is_some() {
                                return Err(serde::de::Error::duplicate_field("value"));
                            }
                            value__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Message => {
                            if message__.is_some() {
                                return Err(serde::de::Error::duplicate_field("message"));
                            }
                            message__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(PolicyCheck {
                    name: name__.unwrap_or_default(),
                    measurements: measurements__.unwrap_or_default(),
                    count: count__.unwrap_or_default(),
                    successful: successful__.unwrap_or_default(),
                    failed: failed__.unwrap_or_default(),
                    failure_limit: failure_limit__.unwrap_or_default(),
                    inconclusive: inconclusive__.unwrap_or_default(),
                    errors: errors__.unwrap_or_default(),
                    at: at__,
                    value: value__.unwrap_or_default(),
                    message: message__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.PolicyCheck", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for PolicyNode {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.name.is_empty() {
            len += 1;
        }
        if !self.reason.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.PolicyNode", len)?;
        if !self.name.is_empty() {
            struct_ser.serialize_field("name", &self.name)?;
        }
        if !self.reason.is_empty() {
            struct_ser.serialize_field("reason", &self.reason)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for PolicyNode {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "name",
            "reason",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Name,
            Reason,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "name" => Ok(GeneratedField::Name),
                            "reason" => Ok(GeneratedField::Reason),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = PolicyNode;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.PolicyNode")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<PolicyNode, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut name__ = None;
                let mut reason__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Name => {
                            if name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("name"));
                            }
                            name__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Reason => {
                            if reason__.is_some() {
                                return Err(serde::de::Error::duplicate_field("reason"));
                            }
                            reason__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(PolicyNode {
                    name: name__.unwrap_or_default(),
                    reason: reason__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.PolicyNode", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for PolicyRejection {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.reason.is_empty() {
            len += 1;
        }
        if !self.message.is_empty() {
            len += 1;
        }
        if self.at.is_some() {
            len += 1;
        }
        if !self.resume_digest.is_empty() {
            len += 1;
        }
        if self.roll_back {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.PolicyRejection", len)?;
        if !self.reason.is_empty() {
            struct_ser.serialize_field("reason", &self.reason)?;
        }
        if !self.message.is_empty() {
            struct_ser.serialize_field("message", &self.message)?;
        }
        if let Some(v) = self.at.as_ref() {
            struct_ser.serialize_field("at", v)?;
        }
        if !self.resume_digest.is_empty() {
            struct_ser.serialize_field("resumeDigest", &self.resume_digest)?;
        }
        if self.roll_back {
            struct_ser.serialize_field("rollBack", &self.roll_back)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for PolicyRejection {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "reason",
            "message",
            "at",
            "resume_digest",
            "resumeDigest",
            "roll_back",
            "rollBack",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Reason,
            Message,
            At,
            ResumeDigest,
            RollBack,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "reason" => Ok(GeneratedField::Reason),
                            "message" => Ok(GeneratedField::Message),
                            "at" => Ok(GeneratedField::At),
                            "resumeDigest" | "resume_digest" => Ok(GeneratedField::ResumeDigest),
                            "rollBack" | "roll_back" => Ok(GeneratedField::RollBack),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = PolicyRejection;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.PolicyRejection")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<PolicyRejection, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut reason__ = None;
                let mut message__ = None;
                let mut at__ = None;
                let mut resume_digest__ = None;
                let mut roll_back__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Reason => {
                            if reason__.is_some() {
                                return Err(serde::de::Error::duplicate_field("reason"));
                            }
                            reason__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Message => {
                            if message__.is_some() {
                                return Err(serde::de::Error::duplicate_field("message"));
                            }
                            message__ = Some(map_.next_value()?);
                        }
                        GeneratedField::At => {
                            if at__.is_some() {
                                return Err(serde::de::Error::duplicate_field("at"));
                            }
                            at__ = map_.next_value()?;
                        }
                        GeneratedField::ResumeDigest => {
                            if resume_digest__.is_some() {
                                return Err(serde::de::Error::duplicate_field("resumeDigest"));
                            }
                            resume_digest__ = Some(map_.next_value()?);
                        }
                        GeneratedField::RollBack => {
                            if roll_back__.is_some() {
                                return Err(serde::de::Error::duplicate_field("rollBack"));
                            }
                            roll_back__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(PolicyRejection {
                    reason: reason__.unwrap_or_default(),
                    message: message__.unwrap_or_default(),
                    at: at__,
                    resume_digest: resume_digest__.unwrap_or_default(),
                    roll_back: roll_back__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.PolicyRejection", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for PolicyRollout {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.name.is_empty() {
            len += 1;
        }
        if !self.uid.is_empty() {
            len += 1;
        }
        if !self.state.is_empty() {
            len += 1;
        }
        if !self.message.is_empty() {
            len += 1;
        }
        if self.paused {
            len += 1;
        }
        if !self.not_accepted.is_empty() {
            len += 1;
        }
        if !self.others.is_empty() {
            len += 1;
        }
        if !self.stable_hash.is_empty() {
            len += 1;
        }
        if self.stable_number != 0 {
            len += 1;
        }
        if !self.stages.is_empty() {
            len += 1;
        }
        if self.pending_approval.is_some() {
            len += 1;
        }
        if self.rejection.is_some() {
            len += 1;
        }
        if !self.blocking.is_empty() {
            len += 1;
        }
        if !self.exempt.is_empty() {
            len += 1;
        }
        if self.more_exempt != 0 {
            len += 1;
        }
        if !self.rollback_digest.is_empty() {
            len += 1;
        }
        if !self.requests.is_empty() {
            len += 1;
        }
        if !self.on_failure.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.PolicyRollout", len)?;
        if !self.name.is_empty() {
            struct_ser.serialize_field("name", &self.name)?;
        }
        if !self.uid.is_empty() {
            struct_ser.serialize_field("uid", &self.uid)?;
        }
        if !self.state.is_empty() {
            struct_ser.serialize_field("state", &self.state)?;
        }
        if !self.message.is_empty() {
            struct_ser.serialize_field("message", &self.message)?;
        }
        if self.paused {
            struct_ser.serialize_field("paused", &self.paused)?;
        }
        if !self.not_accepted.is_empty() {
            struct_ser.serialize_field("notAccepted", &self.not_accepted)?;
        }
        if !self.others.is_empty() {
            struct_ser.serialize_field("others", &self.others)?;
        }
        if !self.stable_hash.is_empty() {
            struct_ser.serialize_field("stableHash", &self.stable_hash)?;
        }
        if self.stable_number != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("stableNumber", ToString::to_string(&self.stable_number).as_str())?;
        }
        if !self.stages.is_empty() {
            struct_ser.serialize_field("stages", &self.stages)?;
        }
        if let Some(v) = self.pending_approval.as_ref() {
            struct_ser.serialize_field("pendingApproval", v)?;
        }
        if let Some(v) = self.rejection.as_ref() {
            struct_ser.serialize_field("rejection", v)?;
        }
        if !self.blocking.is_empty() {
            struct_ser.serialize_field("blocking", &self.blocking)?;
        }
        if !self.exempt.is_empty() {
            struct_ser.serialize_field("exempt", &self.exempt)?;
        }
        if self.more_exempt != 0 {
            struct_ser.serialize_field("moreExempt", &self.more_exempt)?;
        }
        if !self.rollback_digest.is_empty() {
            struct_ser.serialize_field("rollbackDigest", &self.rollback_digest)?;
        }
        if !self.requests.is_empty() {
            struct_ser.serialize_field("requests", &self.requests)?;
        }
        if !self.on_failure.is_empty() {
            struct_ser.serialize_field("onFailure", &self.on_failure)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for PolicyRollout {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "name",
            "uid",
            "state",
            "message",
            "paused",
            "not_accepted",
            "notAccepted",
            "others",
            "stable_hash",
            "stableHash",
            "stable_number",
            "stableNumber",
            "stages",
            "pending_approval",
            "pendingApproval",
            "rejection",
            "blocking",
            "exempt",
            "more_exempt",
            "moreExempt",
            "rollback_digest",
            "rollbackDigest",
            "requests",
            "on_failure",
            "onFailure",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Name,
            Uid,
            State,
            Message,
            Paused,
            NotAccepted,
            Others,
            StableHash,
            StableNumber,
            Stages,
            PendingApproval,
            Rejection,
            Blocking,
            Exempt,
            MoreExempt,
            RollbackDigest,
            Requests,
            OnFailure,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "name" => Ok(GeneratedField::Name),
                            "uid" => Ok(GeneratedField::Uid),
                            "state" => Ok(GeneratedField::State),
                            "message" => Ok(GeneratedField::Message),
                            "paused" => Ok(GeneratedField::Paused),
                            "notAccepted" | "not_accepted" => Ok(GeneratedField::NotAccepted),
                            "others" => Ok(GeneratedField::Others),
                            "stableHash" | "stable_hash" => Ok(GeneratedField::StableHash),
                            "stableNumber" | "stable_number" => Ok(GeneratedField::StableNumber),
                            "stages" => Ok(GeneratedField::Stages),
                            "pendingApproval" | "pending_approval" => Ok(GeneratedField::PendingApproval),
                            "rejection" => Ok(GeneratedField::Rejection),
                            "blocking" => Ok(GeneratedField::Blocking),
                            "exempt" => Ok(GeneratedField::Exempt),
                            "moreExempt" | "more_exempt" => Ok(GeneratedField::MoreExempt),
                            "rollbackDigest" | "rollback_digest" => Ok(GeneratedField::RollbackDigest),
                            "requests" => Ok(GeneratedField::Requests),
                            "onFailure" | "on_failure" => Ok(GeneratedField::OnFailure),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = PolicyRollout;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.PolicyRollout")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<PolicyRollout, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut name__ = None;
                let mut uid__ = None;
                let mut state__ = None;
                let mut message__ = None;
                let mut paused__ = None;
                let mut not_accepted__ = None;
                let mut others__ = None;
                let mut stable_hash__ = None;
                let mut stable_number__ = None;
                let mut stages__ = None;
                let mut pending_approval__ = None;
                let mut rejection__ = None;
                let mut blocking__ = None;
                let mut exempt__ = None;
                let mut more_exempt__ = None;
                let mut rollback_digest__ = None;
                let mut requests__ = None;
                let mut on_failure__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Name => {
                            if name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("name"));
                            }
                            name__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Uid => {
                            if uid__.is_some() {
                                return Err(serde::de::Error::duplicate_field("uid"));
                            }
                            uid__ = Some(map_.next_value()?);
                        }
                        GeneratedField::State => {
                            if state__.is_some() {
                                return Err(serde::de::Error::duplicate_field("state"));
                            }
                            state__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Message => {
                            if message__.is_some() {
                                return Err(serde::de::Error::duplicate_field("message"));
                            }
                            message__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Paused => {
                            if paused__.is_some() {
                                return Err(serde::de::Error::duplicate_field("paused"));
                            }
                            paused__ = Some(map_.next_value()?);
                        }
                        GeneratedField::NotAccepted => {
                            if not_accepted__.is_some() {
                                return Err(serde::de::Error::duplicate_field("notAccepted"));
                            }
                            not_accepted__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Others => {
                            if others__.is_some() {
                                return Err(serde::de::Error::duplicate_field("others"));
                            }
                            others__ = Some(map_.next_value()?);
                        }
                        GeneratedField::StableHash => {
                            if stable_hash__.is_some() {
                                return Err(serde::de::Error::duplicate_field("stableHash"));
                            }
                            stable_hash__ = Some(map_.next_value()?);
                        }
                        GeneratedField::StableNumber => {
                            if stable_number__.is_some() {
                                return Err(serde::de::Error::duplicate_field("stableNumber"));
                            }
                            stable_number__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Stages => {
                            if stages__.is_some() {
                                return Err(serde::de::Error::duplicate_field("stages"));
                            }
                            stages__ = Some(map_.next_value()?);
                        }
                        GeneratedField::PendingApproval => {
                            if pending_approval__.is_some() {
                                return Err(serde::de::Error::duplicate_field("pendingApproval"));
                            }
                            pending_approval__ = map_.next_value()?;
                        }
                        GeneratedField::Rejection => {
                            if rejection__.is_some() {
                                return Err(serde::de::Error::duplicate_field("rejection"));
                            }
                            rejection__ = map_.next_value()?;
                        }
                        GeneratedField::Blocking => {
                            if blocking__.is_some() {
                                return Err(serde::de::Error::duplicate_field("blocking"));
                            }
                            blocking__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Exempt => {
                            if exempt__.is_some() {
                                return Err(serde::de::Error::duplicate_field("exempt"));
                            }
                            exempt__ = Some(map_.next_value()?);
                        }
                        GeneratedField::MoreExempt => {
                            if more_exempt__.is_some() {
                                return Err(serde::de::Error::duplicate_field("moreExempt"));
                            }
                            more_exempt__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::RollbackDigest => {
                            if rollback_digest__.is_some() {
                                return Err(serde::de::Error::duplicate_field("rollbackDigest"));
                            }
                            rollback_digest__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Requests => {
                            if requests__.is_some() {
                                return Err(serde::de::Error::duplicate_field("requests"));
                            }
                            requests__ = Some(map_.next_value()?);
                        }
                        GeneratedField::OnFailure => {
                            if on_failure__.is_some() {
                                return Err(serde::de::Error::duplicate_field("onFailure"));
                            }
                            on_failure__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(PolicyRollout {
                    name: name__.unwrap_or_default(),
                    uid: uid__.unwrap_or_default(),
                    state: state__.unwrap_or_default(),
                    message: message__.unwrap_or_default(),
                    paused: paused__.unwrap_or_default(),
                    not_accepted: not_accepted__.unwrap_or_default(),
                    others: others__.unwrap_or_default(),
                    stable_hash: stable_hash__.unwrap_or_default(),
                    stable_number: stable_number__.unwrap_or_default(),
                    stages: stages__.unwrap_or_default(),
                    pending_approval: pending_approval__,
                    rejection: rejection__,
                    blocking: blocking__.unwrap_or_default(),
                    exempt: exempt__.unwrap_or_default(),
                    more_exempt: more_exempt__.unwrap_or_default(),
                    rollback_digest: rollback_digest__.unwrap_or_default(),
                    requests: requests__.unwrap_or_default(),
                    on_failure: on_failure__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.PolicyRollout", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for PolicyStage {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.name.is_empty() {
            len += 1;
        }
        if !self.state.is_empty() {
            len += 1;
        }
        if self.nodes != 0 {
            len += 1;
        }
        if self.updated != 0 {
            len += 1;
        }
        if self.available != 0 {
            len += 1;
        }
        if self.exempt != 0 {
            len += 1;
        }
        if self.failed != 0 {
            len += 1;
        }
        if self.started_at.is_some() {
            len += 1;
        }
        if self.soak_ends_at.is_some() {
            len += 1;
        }
        if self.completed_at.is_some() {
            len += 1;
        }
        if !self.checks.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.PolicyStage", len)?;
        if !self.name.is_empty() {
            struct_ser.serialize_field("name", &self.name)?;
        }
        if !self.state.is_empty() {
            struct_ser.serialize_field("state", &self.state)?;
        }
        if self.nodes != 0 {
            struct_ser.serialize_field("nodes", &self.nodes)?;
        }
        if self.updated != 0 {
            struct_ser.serialize_field("updated", &self.updated)?;
        }
        if self.available != 0 {
            struct_ser.serialize_field("available", &self.available)?;
        }
        if self.exempt != 0 {
            struct_ser.serialize_field("exempt", &self.exempt)?;
        }
        if self.failed != 0 {
            struct_ser.serialize_field("failed", &self.failed)?;
        }
        if let Some(v) = self.started_at.as_ref() {
            struct_ser.serialize_field("startedAt", v)?;
        }
        if let Some(v) = self.soak_ends_at.as_ref() {
            struct_ser.serialize_field("soakEndsAt", v)?;
        }
        if let Some(v) = self.completed_at.as_ref() {
            struct_ser.serialize_field("completedAt", v)?;
        }
        if !self.checks.is_empty() {
            struct_ser.serialize_field("checks", &self.checks)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for PolicyStage {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "name",
            "state",
            "nodes",
            "updated",
            "available",
            "exempt",
            "failed",
            "started_at",
            "startedAt",
            "soak_ends_at",
            "soakEndsAt",
            "completed_at",
            "completedAt",
            "checks",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Name,
            State,
            Nodes,
            Updated,
            Available,
            Exempt,
            Failed,
            StartedAt,
            SoakEndsAt,
            CompletedAt,
            Checks,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "name" => Ok(GeneratedField::Name),
                            "state" => Ok(GeneratedField::State),
                            "nodes" => Ok(GeneratedField::Nodes),
                            "updated" => Ok(GeneratedField::Updated),
                            "available" => Ok(GeneratedField::Available),
                            "exempt" => Ok(GeneratedField::Exempt),
                            "failed" => Ok(GeneratedField::Failed),
                            "startedAt" | "started_at" => Ok(GeneratedField::StartedAt),
                            "soakEndsAt" | "soak_ends_at" => Ok(GeneratedField::SoakEndsAt),
                            "completedAt" | "completed_at" => Ok(GeneratedField::CompletedAt),
                            "checks" => Ok(GeneratedField::Checks),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = PolicyStage;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.PolicyStage")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<PolicyStage, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut name__ = None;
                let mut state__ = None;
                let mut nodes__ = None;
                let mut updated__ = None;
                let mut available__ = None;
                let mut exempt__ = None;
                let mut failed__ = None;
                let mut started_at__ = None;
                let mut soak_ends_at__ = None;
                let mut completed_at__ = None;
                let mut checks__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Name => {
                            if name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("name"));
                            }
                            name__ = Some(map_.next_value()?);
                        }
                        GeneratedField::State => {
                            if state__.is_some() {
                                return Err(serde::de::Error::duplicate_field("state"));
                            }
                            state__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Nodes => {
                            if nodes__.is_some() {
                                return Err(serde::de::Error::duplicate_field("nodes"));
                            }
                            nodes__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Updated => {
                            if updated__.is_some() {
                                return Err(serde::de::Error::duplicate_field("updated"));
                            }
                            updated__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Available => {
                            if available__.is_some() {
                                return Err(serde::de::Error::duplicate_field("available"));
                            }
                            available__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Exempt => {
                            if exempt__.is_some() {
                                return Err(serde::de::Error::duplicate_field("exempt"));
                            }
                            exempt__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Failed => {
                            if failed__.is_some() {
                                return Err(serde::de::Error::duplicate_field("failed"));
                            }
                            failed__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::StartedAt => {
                            if started_at__.is_some() {
                                return Err(serde::de::Error::duplicate_field("startedAt"));
                            }
                            started_at__ = map_.next_value()?;
                        }
                        GeneratedField::SoakEndsAt => {
                            if soak_ends_at__.is_some() {
                                return Err(serde::de::Error::duplicate_field("soakEndsAt"));
                            }
                            soak_ends_at__ = map_.next_value()?;
                        }
                        GeneratedField::CompletedAt => {
                            if completed_at__.is_some() {
                                return Err(serde::de::Error::duplicate_field("completedAt"));
                            }
                            completed_at__ = map_.next_value()?;
                        }
                        GeneratedField::Checks => {
                            if checks__.is_some() {
                                return Err(serde::de::Error::duplicate_field("checks"));
                            }
                            checks__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(PolicyStage {
                    name: name__.unwrap_or_default(),
                    state: state__.unwrap_or_default(),
                    nodes: nodes__.unwrap_or_default(),
                    updated: updated__.unwrap_or_default(),
                    available: available__.unwrap_or_default(),
                    exempt: exempt__.unwrap_or_default(),
                    failed: failed__.unwrap_or_default(),
                    started_at: started_at__,
                    soak_ends_at: soak_ends_at__,
                    completed_at: completed_at__,
                    checks: checks__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.PolicyStage", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Profile {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        let variant = match self {
            Self::Unspecified => "PROFILE_UNSPECIFIED",
            Self::Default => "PROFILE_DEFAULT",
            Self::UpstreamStrict => "PROFILE_UPSTREAM_STRICT",
        };
        serializer.serialize_str(variant)
    }
}
impl<'de> serde::Deserialize<'de> for Profile {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "PROFILE_UNSPECIFIED",
            "PROFILE_DEFAULT",
            "PROFILE_UPSTREAM_STRICT",
        ];

        struct GeneratedVisitor;

        impl serde::de::Visitor<'_> for GeneratedVisitor {
            type Value = Profile;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(formatter, "expected one of: {:?}", &FIELDS)
            }

            fn visit_i64<E>(self, v: i64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Signed(v), &self)
                    })
            }

            fn visit_u64<E>(self, v: u64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Unsigned(v), &self)
                    })
            }

            fn visit_str<E>(self, value: &str) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                match value {
                    "PROFILE_UNSPECIFIED" => Ok(Profile::Unspecified),
                    "PROFILE_DEFAULT" => Ok(Profile::Default),
                    "PROFILE_UPSTREAM_STRICT" => Ok(Profile::UpstreamStrict),
                    _ => Err(serde::de::Error::unknown_variant(value, FIELDS)),
                }
            }
        }
        deserializer.deserialize_any(GeneratedVisitor)
    }
}
impl serde::Serialize for PrometheusQuery {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.address.is_empty() {
            len += 1;
        }
        if !self.query.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.PrometheusQuery", len)?;
        if !self.address.is_empty() {
            struct_ser.serialize_field("address", &self.address)?;
        }
        if !self.query.is_empty() {
            struct_ser.serialize_field("query", &self.query)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for PrometheusQuery {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "address",
            "query",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Address,
            Query,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "address" => Ok(GeneratedField::Address),
                            "query" => Ok(GeneratedField::Query),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = PrometheusQuery;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.PrometheusQuery")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<PrometheusQuery, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut address__ = None;
                let mut query__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Address => {
                            if address__.is_some() {
                                return Err(serde::de::Error::duplicate_field("address"));
                            }
                            address__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Query => {
                            if query__.is_some() {
                                return Err(serde::de::Error::duplicate_field("query"));
                            }
                            query__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(PrometheusQuery {
                    address: address__.unwrap_or_default(),
                    query: query__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.PrometheusQuery", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Reason {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        let variant = match self {
            Self::Unspecified => "REASON_UNSPECIFIED",
            Self::NodeWithoutPod => "REASON_NODE_WITHOUT_POD",
            Self::NodeWithoutLivePod => "REASON_NODE_WITHOUT_LIVE_POD",
            Self::SurgeOldUnavailable => "REASON_SURGE_OLD_UNAVAILABLE",
            Self::SurgeWithinBudget => "REASON_SURGE_WITHIN_BUDGET",
            Self::NodeNotEligible => "REASON_NODE_NOT_ELIGIBLE",
            Self::ExcessPod => "REASON_EXCESS_POD",
            Self::PodFailed => "REASON_POD_FAILED",
            Self::PodSucceeded => "REASON_POD_SUCCEEDED",
            Self::SurgeOldNotReady => "REASON_SURGE_OLD_NOT_READY",
            Self::SurgeNewAvailable => "REASON_SURGE_NEW_AVAILABLE",
            Self::NodeMissing => "REASON_NODE_MISSING",
            Self::RolloutOldUnavailable => "REASON_ROLLOUT_OLD_UNAVAILABLE",
            Self::RolloutWithinBudget => "REASON_ROLLOUT_WITHIN_BUDGET",
            Self::RolloutNodeSunset => "REASON_ROLLOUT_NODE_SUNSET",
            Self::SelectorMatches => "REASON_SELECTOR_MATCHES",
            Self::SelectorDoesNotMatch => "REASON_SELECTOR_DOES_NOT_MATCH",
            Self::NewTemplate => "REASON_NEW_TEMPLATE",
            Self::Rollback => "REASON_ROLLBACK",
            Self::HashLabelMissing => "REASON_HASH_LABEL_MISSING",
            Self::DuplicateRevision => "REASON_DUPLICATE_REVISION",
            Self::HistoryLimit => "REASON_HISTORY_LIMIT",
            Self::StatusChanged => "REASON_STATUS_CHANGED",
            Self::GenerationObserved => "REASON_GENERATION_OBSERVED",
            Self::RevisionNameCollision => "REASON_REVISION_NAME_COLLISION",
            Self::SelectingAll => "REASON_SELECTING_ALL",
            Self::StatusRewritten => "REASON_STATUS_REWRITTEN",
            Self::InvalidAnnotation => "REASON_INVALID_ANNOTATION",
            Self::TooFewPods => "REASON_TOO_FEW_PODS",
            Self::TooManyPods => "REASON_TOO_MANY_PODS",
            Self::ReplicasChanged => "REASON_REPLICAS_CHANGED",
            Self::ScaleUpNew => "REASON_SCALE_UP_NEW",
            Self::ScaleDownNew => "REASON_SCALE_DOWN_NEW",
            Self::ScaleDownUnhealthy => "REASON_SCALE_DOWN_UNHEALTHY",
            Self::ScaleDownOld => "REASON_SCALE_DOWN_OLD",
            Self::Recreate => "REASON_RECREATE",
            Self::MetadataChanged => "REASON_METADATA_CHANGED",
            Self::ConditionChanged => "REASON_CONDITION_CHANGED",
            Self::WritesFailed => "REASON_WRITES_FAILED",
            Self::RollbackRequested => "REASON_ROLLBACK_REQUESTED",
            Self::PolicyStatusChanged => "REASON_POLICY_STATUS_CHANGED",
            Self::AnalysisDue => "REASON_ANALYSIS_DUE",
            Self::RevisionRejected => "REASON_REVISION_REJECTED",
        };
        serializer.serialize_str(variant)
    }
}
impl<'de> serde::Deserialize<'de> for Reason {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "REASON_UNSPECIFIED",
            "REASON_NODE_WITHOUT_POD",
            "REASON_NODE_WITHOUT_LIVE_POD",
            "REASON_SURGE_OLD_UNAVAILABLE",
            "REASON_SURGE_WITHIN_BUDGET",
            "REASON_NODE_NOT_ELIGIBLE",
            "REASON_EXCESS_POD",
            "REASON_POD_FAILED",
            "REASON_POD_SUCCEEDED",
            "REASON_SURGE_OLD_NOT_READY",
            "REASON_SURGE_NEW_AVAILABLE",
            "REASON_NODE_MISSING",
            "REASON_ROLLOUT_OLD_UNAVAILABLE",
            "REASON_ROLLOUT_WITHIN_BUDGET",
            "REASON_ROLLOUT_NODE_SUNSET",
            "REASON_SELECTOR_MATCHES",
            "REASON_SELECTOR_DOES_NOT_MATCH",
            "REASON_NEW_TEMPLATE",
            "REASON_ROLLBACK",
            "REASON_HASH_LABEL_MISSING",
            "REASON_DUPLICATE_REVISION",
            "REASON_HISTORY_LIMIT",
            "REASON_STATUS_CHANGED",
            "REASON_GENERATION_OBSERVED",
            "REASON_REVISION_NAME_COLLISION",
            "REASON_SELECTING_ALL",
            "REASON_STATUS_REWRITTEN",
            "REASON_INVALID_ANNOTATION",
            "REASON_TOO_FEW_PODS",
            "REASON_TOO_MANY_PODS",
            "REASON_REPLICAS_CHANGED",
            "REASON_SCALE_UP_NEW",
            "REASON_SCALE_DOWN_NEW",
            "REASON_SCALE_DOWN_UNHEALTHY",
            "REASON_SCALE_DOWN_OLD",
            "REASON_RECREATE",
            "REASON_METADATA_CHANGED",
            "REASON_CONDITION_CHANGED",
            "REASON_WRITES_FAILED",
            "REASON_ROLLBACK_REQUESTED",
            "REASON_POLICY_STATUS_CHANGED",
            "REASON_ANALYSIS_DUE",
            "REASON_REVISION_REJECTED",
        ];

        struct GeneratedVisitor;

        impl serde::de::Visitor<'_> for GeneratedVisitor {
            type Value = Reason;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(formatter, "expected one of: {:?}", &FIELDS)
            }

            fn visit_i64<E>(self, v: i64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Signed(v), &self)
                    })
            }

            fn visit_u64<E>(self, v: u64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Unsigned(v), &self)
                    })
            }

            fn visit_str<E>(self, value: &str) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                match value {
                    "REASON_UNSPECIFIED" => Ok(Reason::Unspecified),
                    "REASON_NODE_WITHOUT_POD" => Ok(Reason::NodeWithoutPod),
                    "REASON_NODE_WITHOUT_LIVE_POD" => Ok(Reason::NodeWithoutLivePod),
                    "REASON_SURGE_OLD_UNAVAILABLE" => Ok(Reason::SurgeOldUnavailable),
                    "REASON_SURGE_WITHIN_BUDGET" => Ok(Reason::SurgeWithinBudget),
                    "REASON_NODE_NOT_ELIGIBLE" => Ok(Reason::NodeNotEligible),
                    "REASON_EXCESS_POD" => Ok(Reason::ExcessPod),
                    "REASON_POD_FAILED" => Ok(Reason::PodFailed),
                    "REASON_POD_SUCCEEDED" => Ok(Reason::PodSucceeded),
                    "REASON_SURGE_OLD_NOT_READY" => Ok(Reason::SurgeOldNotReady),
                    "REASON_SURGE_NEW_AVAILABLE" => Ok(Reason::SurgeNewAvailable),
                    "REASON_NODE_MISSING" => Ok(Reason::NodeMissing),
                    "REASON_ROLLOUT_OLD_UNAVAILABLE" => Ok(Reason::RolloutOldUnavailable),
                    "REASON_ROLLOUT_WITHIN_BUDGET" => Ok(Reason::RolloutWithinBudget),
                    "REASON_ROLLOUT_NODE_SUNSET" => Ok(Reason::RolloutNodeSunset),
                    "REASON_SELECTOR_MATCHES" => Ok(Reason::SelectorMatches),
                    "REASON_SELECTOR_DOES_NOT_MATCH" => Ok(Reason::SelectorDoesNotMatch),
                    "REASON_NEW_TEMPLATE" => Ok(Reason::NewTemplate),
                    "REASON_ROLLBACK" => Ok(Reason::Rollback),
                    "REASON_HASH_LABEL_MISSING" => Ok(Reason::HashLabelMissing),
                    "REASON_DUPLICATE_REVISION" => Ok(Reason::DuplicateRevision),
                    "REASON_HISTORY_LIMIT" => Ok(Reason::HistoryLimit),
                    "REASON_STATUS_CHANGED" => Ok(Reason::StatusChanged),
                    "REASON_GENERATION_OBSERVED" => Ok(Reason::GenerationObserved),
                    "REASON_REVISION_NAME_COLLISION" => Ok(Reason::RevisionNameCollision),
                    "REASON_SELECTING_ALL" => Ok(Reason::SelectingAll),
                    "REASON_STATUS_REWRITTEN" => Ok(Reason::StatusRewritten),
                    "REASON_INVALID_ANNOTATION" => Ok(Reason::InvalidAnnotation),
                    "REASON_TOO_FEW_PODS" => Ok(Reason::TooFewPods),
                    "REASON_TOO_MANY_PODS" => Ok(Reason::TooManyPods),
                    "REASON_REPLICAS_CHANGED" => Ok(Reason::ReplicasChanged),
                    "REASON_SCALE_UP_NEW" => Ok(Reason::ScaleUpNew),
                    "REASON_SCALE_DOWN_NEW" => Ok(Reason::ScaleDownNew),
                    "REASON_SCALE_DOWN_UNHEALTHY" => Ok(Reason::ScaleDownUnhealthy),
                    "REASON_SCALE_DOWN_OLD" => Ok(Reason::ScaleDownOld),
                    "REASON_RECREATE" => Ok(Reason::Recreate),
                    "REASON_METADATA_CHANGED" => Ok(Reason::MetadataChanged),
                    "REASON_CONDITION_CHANGED" => Ok(Reason::ConditionChanged),
                    "REASON_WRITES_FAILED" => Ok(Reason::WritesFailed),
                    "REASON_ROLLBACK_REQUESTED" => Ok(Reason::RollbackRequested),
                    "REASON_POLICY_STATUS_CHANGED" => Ok(Reason::PolicyStatusChanged),
                    "REASON_ANALYSIS_DUE" => Ok(Reason::AnalysisDue),
                    "REASON_REVISION_REJECTED" => Ok(Reason::RevisionRejected),
                    _ => Err(serde::de::Error::unknown_variant(value, FIELDS)),
                }
            }
        }
        deserializer.deserialize_any(GeneratedVisitor)
    }
}
impl serde::Serialize for ReconcileState {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.expectations.is_some() {
            len += 1;
        }
        if !self.failed_pod_backoffs.is_empty() {
            len += 1;
        }
        if !self.pod_name_collisions.is_empty() {
            len += 1;
        }
        if self.slow_start.is_some() {
            len += 1;
        }
        if !self.used_pod_names.is_empty() {
            len += 1;
        }
        if !self.blocked_evictions.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.ReconcileState", len)?;
        if let Some(v) = self.expectations.as_ref() {
            struct_ser.serialize_field("expectations", v)?;
        }
        if !self.failed_pod_backoffs.is_empty() {
            struct_ser.serialize_field("failedPodBackoffs", &self.failed_pod_backoffs)?;
        }
        if !self.pod_name_collisions.is_empty() {
            struct_ser.serialize_field("podNameCollisions", &self.pod_name_collisions)?;
        }
        if let Some(v) = self.slow_start.as_ref() {
            struct_ser.serialize_field("slowStart", v)?;
        }
        if !self.used_pod_names.is_empty() {
            struct_ser.serialize_field("usedPodNames", &self.used_pod_names)?;
        }
        if !self.blocked_evictions.is_empty() {
            struct_ser.serialize_field("blockedEvictions", &self.blocked_evictions)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ReconcileState {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "expectations",
            "failed_pod_backoffs",
            "failedPodBackoffs",
            "pod_name_collisions",
            "podNameCollisions",
            "slow_start",
            "slowStart",
            "used_pod_names",
            "usedPodNames",
            "blocked_evictions",
            "blockedEvictions",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Expectations,
            FailedPodBackoffs,
            PodNameCollisions,
            SlowStart,
            UsedPodNames,
            BlockedEvictions,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "expectations" => Ok(GeneratedField::Expectations),
                            "failedPodBackoffs" | "failed_pod_backoffs" => Ok(GeneratedField::FailedPodBackoffs),
                            "podNameCollisions" | "pod_name_collisions" => Ok(GeneratedField::PodNameCollisions),
                            "slowStart" | "slow_start" => Ok(GeneratedField::SlowStart),
                            "usedPodNames" | "used_pod_names" => Ok(GeneratedField::UsedPodNames),
                            "blockedEvictions" | "blocked_evictions" => Ok(GeneratedField::BlockedEvictions),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ReconcileState;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.ReconcileState")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ReconcileState, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut expectations__ = None;
                let mut failed_pod_backoffs__ = None;
                let mut pod_name_collisions__ = None;
                let mut slow_start__ = None;
                let mut used_pod_names__ = None;
                let mut blocked_evictions__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Expectations => {
                            if expectations__.is_some() {
                                return Err(serde::de::Error::duplicate_field("expectations"));
                            }
                            expectations__ = map_.next_value()?;
                        }
                        GeneratedField::FailedPodBackoffs => {
                            if failed_pod_backoffs__.is_some() {
                                return Err(serde::de::Error::duplicate_field("failedPodBackoffs"));
                            }
                            failed_pod_backoffs__ = Some(map_.next_value()?);
                        }
                        GeneratedField::PodNameCollisions => {
                            if pod_name_collisions__.is_some() {
                                return Err(serde::de::Error::duplicate_field("podNameCollisions"));
                            }
                            pod_name_collisions__ = Some(map_.next_value()?);
                        }
                        GeneratedField::SlowStart => {
                            if slow_start__.is_some() {
                                return Err(serde::de::Error::duplicate_field("slowStart"));
                            }
                            slow_start__ = map_.next_value()?;
                        }
                        GeneratedField::UsedPodNames => {
                            if used_pod_names__.is_some() {
                                return Err(serde::de::Error::duplicate_field("usedPodNames"));
                            }
                            used_pod_names__ = Some(map_.next_value()?);
                        }
                        GeneratedField::BlockedEvictions => {
                            if blocked_evictions__.is_some() {
                                return Err(serde::de::Error::duplicate_field("blockedEvictions"));
                            }
                            blocked_evictions__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(ReconcileState {
                    expectations: expectations__,
                    failed_pod_backoffs: failed_pod_backoffs__.unwrap_or_default(),
                    pod_name_collisions: pod_name_collisions__.unwrap_or_default(),
                    slow_start: slow_start__,
                    used_pod_names: used_pod_names__.unwrap_or_default(),
                    blocked_evictions: blocked_evictions__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.ReconcileState", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Refusal {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.message.is_empty() {
            len += 1;
        }
        if self.at.is_some() {
            len += 1;
        }
        if self.since.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.Refusal", len)?;
        if !self.message.is_empty() {
            struct_ser.serialize_field("message", &self.message)?;
        }
        if let Some(v) = self.at.as_ref() {
            struct_ser.serialize_field("at", v)?;
        }
        if let Some(v) = self.since.as_ref() {
            struct_ser.serialize_field("since", v)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Refusal {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "message",
            "at",
            "since",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Message,
            At,
            Since,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "message" => Ok(GeneratedField::Message),
                            "at" => Ok(GeneratedField::At),
                            "since" => Ok(GeneratedField::Since),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Refusal;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.Refusal")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Refusal, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut message__ = None;
                let mut at__ = None;
                let mut since__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Message => {
                            if message__.is_some() {
                                return Err(serde::de::Error::duplicate_field("message"));
                            }
                            message__ = Some(map_.next_value()?);
                        }
                        GeneratedField::At => {
                            if at__.is_some() {
                                return Err(serde::de::Error::duplicate_field("at"));
                            }
                            at__ = map_.next_value()?;
                        }
                        GeneratedField::Since => {
                            if since__.is_some() {
                                return Err(serde::de::Error::duplicate_field("since"));
                            }
                            since__ = map_.next_value()?;
                        }
                    }
                }
                Ok(Refusal {
                    message: message__.unwrap_or_default(),
                    at: at__,
                    since: since__,
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.Refusal", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for RelabelPod {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.pod.is_some() {
            len += 1;
        }
        if !self.patch.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.RelabelPod", len)?;
        if let Some(v) = self.pod.as_ref() {
            struct_ser.serialize_field("pod", v)?;
        }
        if !self.patch.is_empty() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("patch", pbjson::private::base64::encode(&self.patch).as_str())?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for RelabelPod {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "pod",
            "patch",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Pod,
            Patch,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "pod" => Ok(GeneratedField::Pod),
                            "patch" => Ok(GeneratedField::Patch),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = RelabelPod;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.RelabelPod")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<RelabelPod, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut pod__ = None;
                let mut patch__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Pod => {
                            if pod__.is_some() {
                                return Err(serde::de::Error::duplicate_field("pod"));
                            }
                            pod__ = map_.next_value()?;
                        }
                        GeneratedField::Patch => {
                            if patch__.is_some() {
                                return Err(serde::de::Error::duplicate_field("patch"));
                            }
                            patch__ = 
                                Some(map_.next_value::<::pbjson::private::BytesDeserialize<_>>()?.0)
                            ;
                        }
                    }
                }
                Ok(RelabelPod {
                    pod: pod__,
                    patch: patch__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.RelabelPod", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ReleasePod {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.pod.is_some() {
            len += 1;
        }
        if !self.patch.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.ReleasePod", len)?;
        if let Some(v) = self.pod.as_ref() {
            struct_ser.serialize_field("pod", v)?;
        }
        if !self.patch.is_empty() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("patch", pbjson::private::base64::encode(&self.patch).as_str())?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ReleasePod {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "pod",
            "patch",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Pod,
            Patch,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "pod" => Ok(GeneratedField::Pod),
                            "patch" => Ok(GeneratedField::Patch),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ReleasePod;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.ReleasePod")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ReleasePod, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut pod__ = None;
                let mut patch__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Pod => {
                            if pod__.is_some() {
                                return Err(serde::de::Error::duplicate_field("pod"));
                            }
                            pod__ = map_.next_value()?;
                        }
                        GeneratedField::Patch => {
                            if patch__.is_some() {
                                return Err(serde::de::Error::duplicate_field("patch"));
                            }
                            patch__ = 
                                Some(map_.next_value::<::pbjson::private::BytesDeserialize<_>>()?.0)
                            ;
                        }
                    }
                }
                Ok(ReleasePod {
                    pod: pod__,
                    patch: patch__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.ReleasePod", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ReleaseRevision {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.revision.is_some() {
            len += 1;
        }
        if !self.patch.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.ReleaseRevision", len)?;
        if let Some(v) = self.revision.as_ref() {
            struct_ser.serialize_field("revision", v)?;
        }
        if !self.patch.is_empty() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("patch", pbjson::private::base64::encode(&self.patch).as_str())?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ReleaseRevision {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "revision",
            "patch",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Revision,
            Patch,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "revision" => Ok(GeneratedField::Revision),
                            "patch" => Ok(GeneratedField::Patch),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ReleaseRevision;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.ReleaseRevision")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ReleaseRevision, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut revision__ = None;
                let mut patch__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Revision => {
                            if revision__.is_some() {
                                return Err(serde::de::Error::duplicate_field("revision"));
                            }
                            revision__ = map_.next_value()?;
                        }
                        GeneratedField::Patch => {
                            if patch__.is_some() {
                                return Err(serde::de::Error::duplicate_field("patch"));
                            }
                            patch__ = 
                                Some(map_.next_value::<::pbjson::private::BytesDeserialize<_>>()?.0)
                            ;
                        }
                    }
                }
                Ok(ReleaseRevision {
                    revision: revision__,
                    patch: patch__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.ReleaseRevision", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ReplicaExplanation {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.pod_name.is_empty() {
            len += 1;
        }
        if !self.node_name.is_empty() {
            len += 1;
        }
        if self.deletion_order != 0 {
            len += 1;
        }
        if !self.message.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.ReplicaExplanation", len)?;
        if !self.pod_name.is_empty() {
            struct_ser.serialize_field("podName", &self.pod_name)?;
        }
        if !self.node_name.is_empty() {
            struct_ser.serialize_field("nodeName", &self.node_name)?;
        }
        if self.deletion_order != 0 {
            struct_ser.serialize_field("deletionOrder", &self.deletion_order)?;
        }
        if !self.message.is_empty() {
            struct_ser.serialize_field("message", &self.message)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ReplicaExplanation {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "pod_name",
            "podName",
            "node_name",
            "nodeName",
            "deletion_order",
            "deletionOrder",
            "message",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            PodName,
            NodeName,
            DeletionOrder,
            Message,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "podName" | "pod_name" => Ok(GeneratedField::PodName),
                            "nodeName" | "node_name" => Ok(GeneratedField::NodeName),
                            "deletionOrder" | "deletion_order" => Ok(GeneratedField::DeletionOrder),
                            "message" => Ok(GeneratedField::Message),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ReplicaExplanation;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.ReplicaExplanation")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ReplicaExplanation, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut pod_name__ = None;
                let mut node_name__ = None;
                let mut deletion_order__ = None;
                let mut message__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::PodName => {
                            if pod_name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("podName"));
                            }
                            pod_name__ = Some(map_.next_value()?);
                        }
                        GeneratedField::NodeName => {
                            if node_name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("nodeName"));
                            }
                            node_name__ = Some(map_.next_value()?);
                        }
                        GeneratedField::DeletionOrder => {
                            if deletion_order__.is_some() {
                                return Err(serde::de::Error::duplicate_field("deletionOrder"));
                            }
                            deletion_order__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Message => {
                            if message__.is_some() {
                                return Err(serde::de::Error::duplicate_field("message"));
                            }
                            message__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(ReplicaExplanation {
                    pod_name: pod_name__.unwrap_or_default(),
                    node_name: node_name__.unwrap_or_default(),
                    deletion_order: deletion_order__.unwrap_or_default(),
                    message: message__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.ReplicaExplanation", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ReplicaSet {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.object.is_empty() {
            len += 1;
        }
        if !self.related_pods.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.ReplicaSet", len)?;
        if !self.object.is_empty() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("object", pbjson::private::base64::encode(&self.object).as_str())?;
        }
        if !self.related_pods.is_empty() {
            struct_ser.serialize_field("relatedPods", &self.related_pods)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ReplicaSet {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "object",
            "related_pods",
            "relatedPods",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Object,
            RelatedPods,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "object" => Ok(GeneratedField::Object),
                            "relatedPods" | "related_pods" => Ok(GeneratedField::RelatedPods),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ReplicaSet;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.ReplicaSet")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ReplicaSet, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut object__ = None;
                let mut related_pods__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Object => {
                            if object__.is_some() {
                                return Err(serde::de::Error::duplicate_field("object"));
                            }
                            object__ = 
                                Some(map_.next_value::<::pbjson::private::BytesDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::RelatedPods => {
                            if related_pods__.is_some() {
                                return Err(serde::de::Error::duplicate_field("relatedPods"));
                            }
                            related_pods__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(ReplicaSet {
                    object: object__.unwrap_or_default(),
                    related_pods: related_pods__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.ReplicaSet", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ReplicaSetExplanation {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.name.is_empty() {
            len += 1;
        }
        if self.revision != 0 {
            len += 1;
        }
        if self.is_new {
            len += 1;
        }
        if self.replicas != 0 {
            len += 1;
        }
        if self.pods != 0 {
            len += 1;
        }
        if self.ready != 0 {
            len += 1;
        }
        if self.available != 0 {
            len += 1;
        }
        if !self.message.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.ReplicaSetExplanation", len)?;
        if !self.name.is_empty() {
            struct_ser.serialize_field("name", &self.name)?;
        }
        if self.revision != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("revision", ToString::to_string(&self.revision).as_str())?;
        }
        if self.is_new {
            struct_ser.serialize_field("isNew", &self.is_new)?;
        }
        if self.replicas != 0 {
            struct_ser.serialize_field("replicas", &self.replicas)?;
        }
        if self.pods != 0 {
            struct_ser.serialize_field("pods", &self.pods)?;
        }
        if self.ready != 0 {
            struct_ser.serialize_field("ready", &self.ready)?;
        }
        if self.available != 0 {
            struct_ser.serialize_field("available", &self.available)?;
        }
        if !self.message.is_empty() {
            struct_ser.serialize_field("message", &self.message)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ReplicaSetExplanation {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "name",
            "revision",
            "is_new",
            "isNew",
            "replicas",
            "pods",
            "ready",
            "available",
            "message",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Name,
            Revision,
            IsNew,
            Replicas,
            Pods,
            Ready,
            Available,
            Message,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "name" => Ok(GeneratedField::Name),
                            "revision" => Ok(GeneratedField::Revision),
                            "isNew" | "is_new" => Ok(GeneratedField::IsNew),
                            "replicas" => Ok(GeneratedField::Replicas),
                            "pods" => Ok(GeneratedField::Pods),
                            "ready" => Ok(GeneratedField::Ready),
                            "available" => Ok(GeneratedField::Available),
                            "message" => Ok(GeneratedField::Message),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ReplicaSetExplanation;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.ReplicaSetExplanation")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ReplicaSetExplanation, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut name__ = None;
                let mut revision__ = None;
                let mut is_new__ = None;
                let mut replicas__ = None;
                let mut pods__ = None;
                let mut ready__ = None;
                let mut available__ = None;
                let mut message__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Name => {
                            if name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("name"));
                            }
                            name__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Revision => {
                            if revision__.is_some() {
                                return Err(serde::de::Error::duplicate_field("revision"));
                            }
                            revision__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::IsNew => {
                            if is_new__.is_some() {
                                return Err(serde::de::Error::duplicate_field("isNew"));
                            }
                            is_new__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Replicas => {
                            if replicas__.is_some() {
                                return Err(serde::de::Error::duplicate_field("replicas"));
                            }
                            replicas__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Pods => {
                            if pods__.is_some() {
                                return Err(serde::de::Error::duplicate_field("pods"));
                            }
                            pods__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Ready => {
                            if ready__.is_some() {
                                return Err(serde::de::Error::duplicate_field("ready"));
                            }
                            ready__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Available => {
                            if available__.is_some() {
                                return Err(serde::de::Error::duplicate_field("available"));
                            }
                            available__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Message => {
                            if message__.is_some() {
                                return Err(serde::de::Error::duplicate_field("message"));
                            }
                            message__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(ReplicaSetExplanation {
                    name: name__.unwrap_or_default(),
                    revision: revision__.unwrap_or_default(),
                    is_new: is_new__.unwrap_or_default(),
                    replicas: replicas__.unwrap_or_default(),
                    pods: pods__.unwrap_or_default(),
                    ready: ready__.unwrap_or_default(),
                    available: available__.unwrap_or_default(),
                    message: message__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.ReplicaSetExplanation", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ReplicaSetStatus {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.replicas != 0 {
            len += 1;
        }
        if self.fully_labeled_replicas != 0 {
            len += 1;
        }
        if self.ready_replicas != 0 {
            len += 1;
        }
        if self.available_replicas != 0 {
            len += 1;
        }
        if self.terminating_replicas.is_some() {
            len += 1;
        }
        if self.observed_generation != 0 {
            len += 1;
        }
        if !self.conditions.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.ReplicaSetStatus", len)?;
        if self.replicas != 0 {
            struct_ser.serialize_field("replicas", &self.replicas)?;
        }
        if self.fully_labeled_replicas != 0 {
            struct_ser.serialize_field("fullyLabeledReplicas", &self.fully_labeled_replicas)?;
        }
        if self.ready_replicas != 0 {
            struct_ser.serialize_field("readyReplicas", &self.ready_replicas)?;
        }
        if self.available_replicas != 0 {
            struct_ser.serialize_field("availableReplicas", &self.available_replicas)?;
        }
        if let Some(v) = self.terminating_replicas.as_ref() {
            struct_ser.serialize_field("terminatingReplicas", v)?;
        }
        if self.observed_generation != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("observedGeneration", ToString::to_string(&self.observed_generation).as_str())?;
        }
        if !self.conditions.is_empty() {
            struct_ser.serialize_field("conditions", &self.conditions)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ReplicaSetStatus {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "replicas",
            "fully_labeled_replicas",
            "fullyLabeledReplicas",
            "ready_replicas",
            "readyReplicas",
            "available_replicas",
            "availableReplicas",
            "terminating_replicas",
            "terminatingReplicas",
            "observed_generation",
            "observedGeneration",
            "conditions",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Replicas,
            FullyLabeledReplicas,
            ReadyReplicas,
            AvailableReplicas,
            TerminatingReplicas,
            ObservedGeneration,
            Conditions,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "replicas" => Ok(GeneratedField::Replicas),
                            "fullyLabeledReplicas" | "fully_labeled_replicas" => Ok(GeneratedField::FullyLabeledReplicas),
                            "readyReplicas" | "ready_replicas" => Ok(GeneratedField::ReadyReplicas),
                            "availableReplicas" | "available_replicas" => Ok(GeneratedField::AvailableReplicas),
                            "terminatingReplicas" | "terminating_replicas" => Ok(GeneratedField::TerminatingReplicas),
                            "observedGeneration" | "observed_generation" => Ok(GeneratedField::ObservedGeneration),
                            "conditions" => Ok(GeneratedField::Conditions),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ReplicaSetStatus;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.ReplicaSetStatus")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ReplicaSetStatus, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut replicas__ = None;
                let mut fully_labeled_replicas__ = None;
                let mut ready_replicas__ = None;
                let mut available_replicas__ = None;
                let mut terminating_replicas__ = None;
                let mut observed_generation__ = None;
                let mut conditions__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Replicas => {
                            if replicas__.is_some() {
                                return Err(serde::de::Error::duplicate_field("replicas"));
                            }
                            replicas__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::FullyLabeledReplicas => {
                            if fully_labeled_replicas__.is_some() {
                                return Err(serde::de::Error::duplicate_field("fullyLabeledReplicas"));
                            }
                            fully_labeled_replicas__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::ReadyReplicas => {
                            if ready_replicas__.is_some() {
                                return Err(serde::de::Error::duplicate_field("readyReplicas"));
                            }
                            ready_replicas__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::AvailableReplicas => {
                            if available_replicas__.is_some() {
                                return Err(serde::de::Error::duplicate_field("availableReplicas"));
                            }
                            available_replicas__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::TerminatingReplicas => {
                            if terminating_replicas__.is_some() {
                                return Err(serde::de::Error::duplicate_field("terminatingReplicas"));
                            }
                            terminating_replicas__ = 
                                map_.next_value::<::std::option::Option<::pbjson::private::NumberDeserialize<_>>>()?.map(|x| x.0)
                            ;
                        }
                        GeneratedField::ObservedGeneration => {
                            if observed_generation__.is_some() {
                                return Err(serde::de::Error::duplicate_field("observedGeneration"));
                            }
                            observed_generation__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Conditions => {
                            if conditions__.is_some() {
                                return Err(serde::de::Error::duplicate_field("conditions"));
                            }
                            conditions__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(ReplicaSetStatus {
                    replicas: replicas__.unwrap_or_default(),
                    fully_labeled_replicas: fully_labeled_replicas__.unwrap_or_default(),
                    ready_replicas: ready_replicas__.unwrap_or_default(),
                    available_replicas: available_replicas__.unwrap_or_default(),
                    terminating_replicas: terminating_replicas__,
                    observed_generation: observed_generation__.unwrap_or_default(),
                    conditions: conditions__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.ReplicaSetStatus", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ReportRequest {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.workload.is_some() {
            len += 1;
        }
        if !self.plan_id.is_empty() {
            len += 1;
        }
        if self.state.is_some() {
            len += 1;
        }
        if !self.outcomes.is_empty() {
            len += 1;
        }
        if self.options.is_some() {
            len += 1;
        }
        if self.requeue_after.is_some() {
            len += 1;
        }
        if !self.plan_error.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.ReportRequest", len)?;
        if let Some(v) = self.workload.as_ref() {
            struct_ser.serialize_field("workload", v)?;
        }
        if !self.plan_id.is_empty() {
            struct_ser.serialize_field("planId", &self.plan_id)?;
        }
        if let Some(v) = self.state.as_ref() {
            struct_ser.serialize_field("state", v)?;
        }
        if !self.outcomes.is_empty() {
            struct_ser.serialize_field("outcomes", &self.outcomes)?;
        }
        if let Some(v) = self.options.as_ref() {
            struct_ser.serialize_field("options", v)?;
        }
        if let Some(v) = self.requeue_after.as_ref() {
            struct_ser.serialize_field("requeueAfter", v)?;
        }
        if !self.plan_error.is_empty() {
            struct_ser.serialize_field("planError", &self.plan_error)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ReportRequest {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "workload",
            "plan_id",
            "planId",
            "state",
            "outcomes",
            "options",
            "requeue_after",
            "requeueAfter",
            "plan_error",
            "planError",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Workload,
            PlanId,
            State,
            Outcomes,
            Options,
            RequeueAfter,
            PlanError,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "workload" => Ok(GeneratedField::Workload),
                            "planId" | "plan_id" => Ok(GeneratedField::PlanId),
                            "state" => Ok(GeneratedField::State),
                            "outcomes" => Ok(GeneratedField::Outcomes),
                            "options" => Ok(GeneratedField::Options),
                            "requeueAfter" | "requeue_after" => Ok(GeneratedField::RequeueAfter),
                            "planError" | "plan_error" => Ok(GeneratedField::PlanError),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ReportRequest;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.ReportRequest")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ReportRequest, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut workload__ = None;
                let mut plan_id__ = None;
                let mut state__ = None;
                let mut outcomes__ = None;
                let mut options__ = None;
                let mut requeue_after__ = None;
                let mut plan_error__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Workload => {
                            if workload__.is_some() {
                                return Err(serde::de::Error::duplicate_field("workload"));
                            }
                            workload__ = map_.next_value()?;
                        }
                        GeneratedField::PlanId => {
                            if plan_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("planId"));
                            }
                            plan_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::State => {
                            if state__.is_some() {
                                return Err(serde::de::Error::duplicate_field("state"));
                            }
                            state__ = map_.next_value()?;
                        }
                        GeneratedField::Outcomes => {
                            if outcomes__.is_some() {
                                return Err(serde::de::Error::duplicate_field("outcomes"));
                            }
                            outcomes__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Options => {
                            if options__.is_some() {
                                return Err(serde::de::Error::duplicate_field("options"));
                            }
                            options__ = map_.next_value()?;
                        }
                        GeneratedField::RequeueAfter => {
                            if requeue_after__.is_some() {
                                return Err(serde::de::Error::duplicate_field("requeueAfter"));
                            }
                            requeue_after__ = map_.next_value()?;
                        }
                        GeneratedField::PlanError => {
                            if plan_error__.is_some() {
                                return Err(serde::de::Error::duplicate_field("planError"));
                            }
                            plan_error__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(ReportRequest {
                    workload: workload__,
                    plan_id: plan_id__.unwrap_or_default(),
                    state: state__,
                    outcomes: outcomes__.unwrap_or_default(),
                    options: options__,
                    requeue_after: requeue_after__,
                    plan_error: plan_error__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.ReportRequest", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ReportResponse {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.state.is_some() {
            len += 1;
        }
        if self.requeue != 0 {
            len += 1;
        }
        if self.requeue_after.is_some() {
            len += 1;
        }
        if !self.message.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.ReportResponse", len)?;
        if let Some(v) = self.state.as_ref() {
            struct_ser.serialize_field("state", v)?;
        }
        if self.requeue != 0 {
            let v = Requeue::try_from(self.requeue)
                .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", self.requeue)))?;
            struct_ser.serialize_field("requeue", &v)?;
        }
        if let Some(v) = self.requeue_after.as_ref() {
            struct_ser.serialize_field("requeueAfter", v)?;
        }
        if !self.message.is_empty() {
            struct_ser.serialize_field("message", &self.message)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ReportResponse {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "state",
            "requeue",
            "requeue_after",
            "requeueAfter",
            "message",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            State,
            Requeue,
            RequeueAfter,
            Message,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "state" => Ok(GeneratedField::State),
                            "requeue" => Ok(GeneratedField::Requeue),
                            "requeueAfter" | "requeue_after" => Ok(GeneratedField::RequeueAfter),
                            "message" => Ok(GeneratedField::Message),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ReportResponse;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.ReportResponse")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ReportResponse, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut state__ = None;
                let mut requeue__ = None;
                let mut requeue_after__ = None;
                let mut message__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::State => {
                            if state__.is_some() {
                                return Err(serde::de::Error::duplicate_field("state"));
                            }
                            state__ = map_.next_value()?;
                        }
                        GeneratedField::Requeue => {
                            if requeue__.is_some() {
                                return Err(serde::de::Error::duplicate_field("requeue"));
                            }
                            requeue__ = Some(map_.next_value::<Requeue>()? as i32);
                        }
                        GeneratedField::RequeueAfter => {
                            if requeue_after__.is_some() {
                                return Err(serde::de::Error::duplicate_field("requeueAfter"));
                            }
                            requeue_after__ = map_.next_value()?;
                        }
                        GeneratedField::Message => {
                            if message__.is_some() {
                                return Err(serde::de::Error::duplicate_field("message"));
                            }
                            message__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(ReportResponse {
                    state: state__,
                    requeue: requeue__.unwrap_or_default(),
                    requeue_after: requeue_after__,
                    message: message__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.ReportResponse", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Requeue {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        let variant = match self {
            Self::Unspecified => "REQUEUE_UNSPECIFIED",
            Self::None => "REQUEUE_NONE",
            Self::After => "REQUEUE_AFTER",
            Self::Backoff => "REQUEUE_BACKOFF",
        };
        serializer.serialize_str(variant)
    }
}
impl<'de> serde::Deserialize<'de> for Requeue {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "REQUEUE_UNSPECIFIED",
            "REQUEUE_NONE",
            "REQUEUE_AFTER",
            "REQUEUE_BACKOFF",
        ];

        struct GeneratedVisitor;

        impl serde::de::Visitor<'_> for GeneratedVisitor {
            type Value = Requeue;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(formatter, "expected one of: {:?}", &FIELDS)
            }

            fn visit_i64<E>(self, v: i64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Signed(v), &self)
                    })
            }

            fn visit_u64<E>(self, v: u64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Unsigned(v), &self)
                    })
            }

            fn visit_str<E>(self, value: &str) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                match value {
                    "REQUEUE_UNSPECIFIED" => Ok(Requeue::Unspecified),
                    "REQUEUE_NONE" => Ok(Requeue::None),
                    "REQUEUE_AFTER" => Ok(Requeue::After),
                    "REQUEUE_BACKOFF" => Ok(Requeue::Backoff),
                    _ => Err(serde::de::Error::unknown_variant(value, FIELDS)),
                }
            }
        }
        deserializer.deserialize_any(GeneratedVisitor)
    }
}
impl serde::Serialize for ResourceQuantity {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.name.is_empty() {
            len += 1;
        }
        if !self.quantity.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.ResourceQuantity", len)?;
        if !self.name.is_empty() {
            struct_ser.serialize_field("name", &self.name)?;
        }
        if !self.quantity.is_empty() {
            struct_ser.serialize_field("quantity", &self.quantity)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ResourceQuantity {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "name",
            "quantity",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Name,
            Quantity,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "name" => Ok(GeneratedField::Name),
                            "quantity" => Ok(GeneratedField::Quantity),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ResourceQuantity;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.ResourceQuantity")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ResourceQuantity, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut name__ = None;
                let mut quantity__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Name => {
                            if name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("name"));
                            }
                            name__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Quantity => {
                            if quantity__.is_some() {
                                return Err(serde::de::Error::duplicate_field("quantity"));
                            }
                            quantity__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(ResourceQuantity {
                    name: name__.unwrap_or_default(),
                    quantity: quantity__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.ResourceQuantity", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Result {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        let variant = match self {
            Self::Unspecified => "RESULT_UNSPECIFIED",
            Self::Succeeded => "RESULT_SUCCEEDED",
            Self::AlreadyExists => "RESULT_ALREADY_EXISTS",
            Self::NameTaken => "RESULT_NAME_TAKEN",
            Self::NotFound => "RESULT_NOT_FOUND",
            Self::NamespaceTerminating => "RESULT_NAMESPACE_TERMINATING",
            Self::Failed => "RESULT_FAILED",
            Self::Skipped => "RESULT_SKIPPED",
            Self::Blocked => "RESULT_BLOCKED",
        };
        serializer.serialize_str(variant)
    }
}
impl<'de> serde::Deserialize<'de> for Result {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "RESULT_UNSPECIFIED",
            "RESULT_SUCCEEDED",
            "RESULT_ALREADY_EXISTS",
            "RESULT_NAME_TAKEN",
            "RESULT_NOT_FOUND",
            "RESULT_NAMESPACE_TERMINATING",
            "RESULT_FAILED",
            "RESULT_SKIPPED",
            "RESULT_BLOCKED",
        ];

        struct GeneratedVisitor;

        impl serde::de::Visitor<'_> for GeneratedVisitor {
            type Value = Result;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(formatter, "expected one of: {:?}", &FIELDS)
            }

            fn visit_i64<E>(self, v: i64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Signed(v), &self)
                    })
            }

            fn visit_u64<E>(self, v: u64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Unsigned(v), &self)
                    })
            }

            fn visit_str<E>(self, value: &str) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                match value {
                    "RESULT_UNSPECIFIED" => Ok(Result::Unspecified),
                    "RESULT_SUCCEEDED" => Ok(Result::Succeeded),
                    "RESULT_ALREADY_EXISTS" => Ok(Result::AlreadyExists),
                    "RESULT_NAME_TAKEN" => Ok(Result::NameTaken),
                    "RESULT_NOT_FOUND" => Ok(Result::NotFound),
                    "RESULT_NAMESPACE_TERMINATING" => Ok(Result::NamespaceTerminating),
                    "RESULT_FAILED" => Ok(Result::Failed),
                    "RESULT_SKIPPED" => Ok(Result::Skipped),
                    "RESULT_BLOCKED" => Ok(Result::Blocked),
                    _ => Err(serde::de::Error::unknown_variant(value, FIELDS)),
                }
            }
        }
        deserializer.deserialize_any(GeneratedVisitor)
    }
}
impl serde::Serialize for RevisionStatus {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.name.is_empty() {
            len += 1;
        }
        if self.number != 0 {
            len += 1;
        }
        if !self.hash.is_empty() {
            len += 1;
        }
        if self.is_current {
            len += 1;
        }
        if !self.images.is_empty() {
            len += 1;
        }
        if self.created_at.is_some() {
            len += 1;
        }
        if self.pods != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.RevisionStatus", len)?;
        if !self.name.is_empty() {
            struct_ser.serialize_field("name", &self.name)?;
        }
        if self.number != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("number", ToString::to_string(&self.number).as_str())?;
        }
        if !self.hash.is_empty() {
            struct_ser.serialize_field("hash", &self.hash)?;
        }
        if self.is_current {
            struct_ser.serialize_field("isCurrent", &self.is_current)?;
        }
        if !self.images.is_empty() {
            struct_ser.serialize_field("images", &self.images)?;
        }
        if let Some(v) = self.created_at.as_ref() {
            struct_ser.serialize_field("createdAt", v)?;
        }
        if self.pods != 0 {
            struct_ser.serialize_field("pods", &self.pods)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for RevisionStatus {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "name",
            "number",
            "hash",
            "is_current",
            "isCurrent",
            "images",
            "created_at",
            "createdAt",
            "pods",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Name,
            Number,
            Hash,
            IsCurrent,
            Images,
            CreatedAt,
            Pods,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "name" => Ok(GeneratedField::Name),
                            "number" => Ok(GeneratedField::Number),
                            "hash" => Ok(GeneratedField::Hash),
                            "isCurrent" | "is_current" => Ok(GeneratedField::IsCurrent),
                            "images" => Ok(GeneratedField::Images),
                            "createdAt" | "created_at" => Ok(GeneratedField::CreatedAt),
                            "pods" => Ok(GeneratedField::Pods),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = RevisionStatus;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.RevisionStatus")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<RevisionStatus, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut name__ = None;
                let mut number__ = None;
                let mut hash__ = None;
                let mut is_current__ = None;
                let mut images__ = None;
                let mut created_at__ = None;
                let mut pods__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Name => {
                            if name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("name"));
                            }
                            name__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Number => {
                            if number__.is_some() {
                                return Err(serde::de::Error::duplicate_field("number"));
                            }
                            number__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Hash => {
                            if hash__.is_some() {
                                return Err(serde::de::Error::duplicate_field("hash"));
                            }
                            hash__ = Some(map_.next_value()?);
                        }
                        GeneratedField::IsCurrent => {
                            if is_current__.is_some() {
                                return Err(serde::de::Error::duplicate_field("isCurrent"));
                            }
                            is_current__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Images => {
                            if images__.is_some() {
                                return Err(serde::de::Error::duplicate_field("images"));
                            }
                            images__ = Some(map_.next_value()?);
                        }
                        GeneratedField::CreatedAt => {
                            if created_at__.is_some() {
                                return Err(serde::de::Error::duplicate_field("createdAt"));
                            }
                            created_at__ = map_.next_value()?;
                        }
                        GeneratedField::Pods => {
                            if pods__.is_some() {
                                return Err(serde::de::Error::duplicate_field("pods"));
                            }
                            pods__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                    }
                }
                Ok(RevisionStatus {
                    name: name__.unwrap_or_default(),
                    number: number__.unwrap_or_default(),
                    hash: hash__.unwrap_or_default(),
                    is_current: is_current__.unwrap_or_default(),
                    images: images__.unwrap_or_default(),
                    created_at: created_at__,
                    pods: pods__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.RevisionStatus", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Rollout {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.current_hash.is_empty() {
            len += 1;
        }
        if self.current_revision != 0 {
            len += 1;
        }
        if self.desired != 0 {
            len += 1;
        }
        if self.max_unavailable != 0 {
            len += 1;
        }
        if self.max_surge != 0 {
            len += 1;
        }
        if self.unavailable != 0 {
            len += 1;
        }
        if self.surging != 0 {
            len += 1;
        }
        if self.outdated != 0 {
            len += 1;
        }
        if self.without_pod != 0 {
            len += 1;
        }
        if self.updated_unavailable != 0 {
            len += 1;
        }
        if self.updated_available != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.Rollout", len)?;
        if !self.current_hash.is_empty() {
            struct_ser.serialize_field("currentHash", &self.current_hash)?;
        }
        if self.current_revision != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("currentRevision", ToString::to_string(&self.current_revision).as_str())?;
        }
        if self.desired != 0 {
            struct_ser.serialize_field("desired", &self.desired)?;
        }
        if self.max_unavailable != 0 {
            struct_ser.serialize_field("maxUnavailable", &self.max_unavailable)?;
        }
        if self.max_surge != 0 {
            struct_ser.serialize_field("maxSurge", &self.max_surge)?;
        }
        if self.unavailable != 0 {
            struct_ser.serialize_field("unavailable", &self.unavailable)?;
        }
        if self.surging != 0 {
            struct_ser.serialize_field("surging", &self.surging)?;
        }
        if self.outdated != 0 {
            struct_ser.serialize_field("outdated", &self.outdated)?;
        }
        if self.without_pod != 0 {
            struct_ser.serialize_field("withoutPod", &self.without_pod)?;
        }
        if self.updated_unavailable != 0 {
            struct_ser.serialize_field("updatedUnavailable", &self.updated_unavailable)?;
        }
        if self.updated_available != 0 {
            struct_ser.serialize_field("updatedAvailable", &self.updated_available)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Rollout {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "current_hash",
            "currentHash",
            "current_revision",
            "currentRevision",
            "desired",
            "max_unavailable",
            "maxUnavailable",
            "max_surge",
            "maxSurge",
            "unavailable",
            "surging",
            "outdated",
            "without_pod",
            "withoutPod",
            "updated_unavailable",
            "updatedUnavailable",
            "updated_available",
            "updatedAvailable",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            CurrentHash,
            CurrentRevision,
            Desired,
            MaxUnavailable,
            MaxSurge,
            Unavailable,
            Surging,
            Outdated,
            WithoutPod,
            UpdatedUnavailable,
            UpdatedAvailable,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "currentHash" | "current_hash" => Ok(GeneratedField::CurrentHash),
                            "currentRevision" | "current_revision" => Ok(GeneratedField::CurrentRevision),
                            "desired" => Ok(GeneratedField::Desired),
                            "maxUnavailable" | "max_unavailable" => Ok(GeneratedField::MaxUnavailable),
                            "maxSurge" | "max_surge" => Ok(GeneratedField::MaxSurge),
                            "unavailable" => Ok(GeneratedField::Unavailable),
                            "surging" => Ok(GeneratedField::Surging),
                            "outdated" => Ok(GeneratedField::Outdated),
                            "withoutPod" | "without_pod" => Ok(GeneratedField::WithoutPod),
                            "updatedUnavailable" | "updated_unavailable" => Ok(GeneratedField::UpdatedUnavailable),
                            "updatedAvailable" | "updated_available" => Ok(GeneratedField::UpdatedAvailable),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Rollout;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.Rollout")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Rollout, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut current_hash__ = None;
                let mut current_revision__ = None;
                let mut desired__ = None;
                let mut max_unavailable__ = None;
                let mut max_surge__ = None;
                let mut unavailable__ = None;
                let mut surging__ = None;
                let mut outdated__ = None;
                let mut without_pod__ = None;
                let mut updated_unavailable__ = None;
                let mut updated_available__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::CurrentHash => {
                            if current_hash__.is_some() {
                                return Err(serde::de::Error::duplicate_field("currentHash"));
                            }
                            current_hash__ = Some(map_.next_value()?);
                        }
                        GeneratedField::CurrentRevision => {
                            if current_revision__.is_some() {
                                return Err(serde::de::Error::duplicate_field("currentRevision"));
                            }
                            current_revision__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Desired => {
                            if desired__.is_some() {
                                return Err(serde::de::Error::duplicate_field("desired"));
                            }
                            desired__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::MaxUnavailable => {
                            if max_unavailable__.is_some() {
                                return Err(serde::de::Error::duplicate_field("maxUnavailable"));
                            }
                            max_unavailable__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::MaxSurge => {
                            if max_surge__.is_some() {
                                return Err(serde::de::Error::duplicate_field("maxSurge"));
                            }
                            max_surge__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Unavailable => {
                            if unavailable__.is_some() {
                                return Err(serde::de::Error::duplicate_field("unavailable"));
                            }
                            unavailable__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Surging => {
                            if surging__.is_some() {
                                return Err(serde::de::Error::duplicate_field("surging"));
                            }
                            surging__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Outdated => {
                            if outdated__.is_some() {
                                return Err(serde::de::Error::duplicate_field("outdated"));
                            }
                            outdated__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::WithoutPod => {
                            if without_pod__.is_some() {
                                return Err(serde::de::Error::duplicate_field("withoutPod"));
                            }
                            without_pod__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::UpdatedUnavailable => {
                            if updated_unavailable__.is_some() {
                                return Err(serde::de::Error::duplicate_field("updatedUnavailable"));
                            }
                            updated_unavailable__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::UpdatedAvailable => {
                            if updated_available__.is_some() {
                                return Err(serde::de::Error::duplicate_field("updatedAvailable"));
                            }
                            updated_available__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                    }
                }
                Ok(Rollout {
                    current_hash: current_hash__.unwrap_or_default(),
                    current_revision: current_revision__.unwrap_or_default(),
                    desired: desired__.unwrap_or_default(),
                    max_unavailable: max_unavailable__.unwrap_or_default(),
                    max_surge: max_surge__.unwrap_or_default(),
                    unavailable: unavailable__.unwrap_or_default(),
                    surging: surging__.unwrap_or_default(),
                    outdated: outdated__.unwrap_or_default(),
                    without_pod: without_pod__.unwrap_or_default(),
                    updated_unavailable: updated_unavailable__.unwrap_or_default(),
                    updated_available: updated_available__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.Rollout", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for RolloutPolicy {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.object.is_empty() {
            len += 1;
        }
        if !self.former_target_uids.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.RolloutPolicy", len)?;
        if !self.object.is_empty() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("object", pbjson::private::base64::encode(&self.object).as_str())?;
        }
        if !self.former_target_uids.is_empty() {
            struct_ser.serialize_field("formerTargetUids", &self.former_target_uids)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for RolloutPolicy {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "object",
            "former_target_uids",
            "formerTargetUids",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Object,
            FormerTargetUids,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "object" => Ok(GeneratedField::Object),
                            "formerTargetUids" | "former_target_uids" => Ok(GeneratedField::FormerTargetUids),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = RolloutPolicy;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.RolloutPolicy")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<RolloutPolicy, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut object__ = None;
                let mut former_target_uids__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Object => {
                            if object__.is_some() {
                                return Err(serde::de::Error::duplicate_field("object"));
                            }
                            object__ = 
                                Some(map_.next_value::<::pbjson::private::BytesDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::FormerTargetUids => {
                            if former_target_uids__.is_some() {
                                return Err(serde::de::Error::duplicate_field("formerTargetUids"));
                            }
                            former_target_uids__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(RolloutPolicy {
                    object: object__.unwrap_or_default(),
                    former_target_uids: former_target_uids__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.RolloutPolicy", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for RolloutState {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        let variant = match self {
            Self::Unspecified => "ROLLOUT_STATE_UNSPECIFIED",
            Self::Complete => "ROLLOUT_STATE_COMPLETE",
            Self::Paused => "ROLLOUT_STATE_PAUSED",
            Self::WaitingForDelete => "ROLLOUT_STATE_WAITING_FOR_DELETE",
            Self::Progressing => "ROLLOUT_STATE_PROGRESSING",
            Self::Stuck => "ROLLOUT_STATE_STUCK",
        };
        serializer.serialize_str(variant)
    }
}
impl<'de> serde::Deserialize<'de> for RolloutState {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "ROLLOUT_STATE_UNSPECIFIED",
            "ROLLOUT_STATE_COMPLETE",
            "ROLLOUT_STATE_PAUSED",
            "ROLLOUT_STATE_WAITING_FOR_DELETE",
            "ROLLOUT_STATE_PROGRESSING",
            "ROLLOUT_STATE_STUCK",
        ];

        struct GeneratedVisitor;

        impl serde::de::Visitor<'_> for GeneratedVisitor {
            type Value = RolloutState;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(formatter, "expected one of: {:?}", &FIELDS)
            }

            fn visit_i64<E>(self, v: i64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Signed(v), &self)
                    })
            }

            fn visit_u64<E>(self, v: u64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Unsigned(v), &self)
                    })
            }

            fn visit_str<E>(self, value: &str) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                match value {
                    "ROLLOUT_STATE_UNSPECIFIED" => Ok(RolloutState::Unspecified),
                    "ROLLOUT_STATE_COMPLETE" => Ok(RolloutState::Complete),
                    "ROLLOUT_STATE_PAUSED" => Ok(RolloutState::Paused),
                    "ROLLOUT_STATE_WAITING_FOR_DELETE" => Ok(RolloutState::WaitingForDelete),
                    "ROLLOUT_STATE_PROGRESSING" => Ok(RolloutState::Progressing),
                    "ROLLOUT_STATE_STUCK" => Ok(RolloutState::Stuck),
                    _ => Err(serde::de::Error::unknown_variant(value, FIELDS)),
                }
            }
        }
        deserializer.deserialize_any(GeneratedVisitor)
    }
}
impl serde::Serialize for Rule {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        let variant = match self {
            Self::Unspecified => "RULE_UNSPECIFIED",
            Self::Eligible => "RULE_ELIGIBLE",
            Self::NodeName => "RULE_NODE_NAME",
            Self::NodeSelector => "RULE_NODE_SELECTOR",
            Self::NodeAffinity => "RULE_NODE_AFFINITY",
            Self::TaintNoSchedule => "RULE_TAINT_NO_SCHEDULE",
            Self::TaintNoExecute => "RULE_TAINT_NO_EXECUTE",
            Self::NodeMissing => "RULE_NODE_MISSING",
            Self::MaxUnavailable => "RULE_MAX_UNAVAILABLE",
            Self::MaxSurge => "RULE_MAX_SURGE",
            Self::OnDelete => "RULE_ON_DELETE",
            Self::FailedPodBackoff => "RULE_FAILED_POD_BACKOFF",
            Self::PodDeleting => "RULE_POD_DELETING",
            Self::Expectations => "RULE_EXPECTATIONS",
            Self::Burst => "RULE_BURST",
            Self::ExcessPod => "RULE_EXCESS_POD",
            Self::Outdated => "RULE_OUTDATED",
            Self::NewPodNotAvailable => "RULE_NEW_POD_NOT_AVAILABLE",
            Self::PodFinished => "RULE_POD_FINISHED",
            Self::WorkloadInactive => "RULE_WORKLOAD_INACTIVE",
            Self::PlacementFirst => "RULE_PLACEMENT_FIRST",
            Self::RolloutPolicy => "RULE_ROLLOUT_POLICY",
        };
        serializer.serialize_str(variant)
    }
}
impl<'de> serde::Deserialize<'de> for Rule {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "RULE_UNSPECIFIED",
            "RULE_ELIGIBLE",
            "RULE_NODE_NAME",
            "RULE_NODE_SELECTOR",
            "RULE_NODE_AFFINITY",
            "RULE_TAINT_NO_SCHEDULE",
            "RULE_TAINT_NO_EXECUTE",
            "RULE_NODE_MISSING",
            "RULE_MAX_UNAVAILABLE",
            "RULE_MAX_SURGE",
            "RULE_ON_DELETE",
            "RULE_FAILED_POD_BACKOFF",
            "RULE_POD_DELETING",
            "RULE_EXPECTATIONS",
            "RULE_BURST",
            "RULE_EXCESS_POD",
            "RULE_OUTDATED",
            "RULE_NEW_POD_NOT_AVAILABLE",
            "RULE_POD_FINISHED",
            "RULE_WORKLOAD_INACTIVE",
            "RULE_PLACEMENT_FIRST",
            "RULE_ROLLOUT_POLICY",
        ];

        struct GeneratedVisitor;

        impl serde::de::Visitor<'_> for GeneratedVisitor {
            type Value = Rule;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(formatter, "expected one of: {:?}", &FIELDS)
            }

            fn visit_i64<E>(self, v: i64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Signed(v), &self)
                    })
            }

            fn visit_u64<E>(self, v: u64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Unsigned(v), &self)
                    })
            }

            fn visit_str<E>(self, value: &str) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                match value {
                    "RULE_UNSPECIFIED" => Ok(Rule::Unspecified),
                    "RULE_ELIGIBLE" => Ok(Rule::Eligible),
                    "RULE_NODE_NAME" => Ok(Rule::NodeName),
                    "RULE_NODE_SELECTOR" => Ok(Rule::NodeSelector),
                    "RULE_NODE_AFFINITY" => Ok(Rule::NodeAffinity),
                    "RULE_TAINT_NO_SCHEDULE" => Ok(Rule::TaintNoSchedule),
                    "RULE_TAINT_NO_EXECUTE" => Ok(Rule::TaintNoExecute),
                    "RULE_NODE_MISSING" => Ok(Rule::NodeMissing),
                    "RULE_MAX_UNAVAILABLE" => Ok(Rule::MaxUnavailable),
                    "RULE_MAX_SURGE" => Ok(Rule::MaxSurge),
                    "RULE_ON_DELETE" => Ok(Rule::OnDelete),
                    "RULE_FAILED_POD_BACKOFF" => Ok(Rule::FailedPodBackoff),
                    "RULE_POD_DELETING" => Ok(Rule::PodDeleting),
                    "RULE_EXPECTATIONS" => Ok(Rule::Expectations),
                    "RULE_BURST" => Ok(Rule::Burst),
                    "RULE_EXCESS_POD" => Ok(Rule::ExcessPod),
                    "RULE_OUTDATED" => Ok(Rule::Outdated),
                    "RULE_NEW_POD_NOT_AVAILABLE" => Ok(Rule::NewPodNotAvailable),
                    "RULE_POD_FINISHED" => Ok(Rule::PodFinished),
                    "RULE_WORKLOAD_INACTIVE" => Ok(Rule::WorkloadInactive),
                    "RULE_PLACEMENT_FIRST" => Ok(Rule::PlacementFirst),
                    "RULE_ROLLOUT_POLICY" => Ok(Rule::RolloutPolicy),
                    _ => Err(serde::de::Error::unknown_variant(value, FIELDS)),
                }
            }
        }
        deserializer.deserialize_any(GeneratedVisitor)
    }
}
impl serde::Serialize for Scope {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        let variant = match self {
            Self::Unspecified => "SCOPE_UNSPECIFIED",
            Self::Workload => "SCOPE_WORKLOAD",
            Self::Rollouts => "SCOPE_ROLLOUTS",
        };
        serializer.serialize_str(variant)
    }
}
impl<'de> serde::Deserialize<'de> for Scope {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "SCOPE_UNSPECIFIED",
            "SCOPE_WORKLOAD",
            "SCOPE_ROLLOUTS",
        ];

        struct GeneratedVisitor;

        impl serde::de::Visitor<'_> for GeneratedVisitor {
            type Value = Scope;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(formatter, "expected one of: {:?}", &FIELDS)
            }

            fn visit_i64<E>(self, v: i64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Signed(v), &self)
                    })
            }

            fn visit_u64<E>(self, v: u64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Unsigned(v), &self)
                    })
            }

            fn visit_str<E>(self, value: &str) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                match value {
                    "SCOPE_UNSPECIFIED" => Ok(Scope::Unspecified),
                    "SCOPE_WORKLOAD" => Ok(Scope::Workload),
                    "SCOPE_ROLLOUTS" => Ok(Scope::Rollouts),
                    _ => Err(serde::de::Error::unknown_variant(value, FIELDS)),
                }
            }
        }
        deserializer.deserialize_any(GeneratedVisitor)
    }
}
impl serde::Serialize for SharedLabel {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.key.is_empty() {
            len += 1;
        }
        if !self.value.is_empty() {
            len += 1;
        }
        if self.value_is_node_name {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.SharedLabel", len)?;
        if !self.key.is_empty() {
            struct_ser.serialize_field("key", &self.key)?;
        }
        if !self.value.is_empty() {
            struct_ser.serialize_field("value", &self.value)?;
        }
        if self.value_is_node_name {
            struct_ser.serialize_field("valueIsNodeName", &self.value_is_node_name)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for SharedLabel {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "key",
            "value",
            "value_is_node_name",
            "valueIsNodeName",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Key,
            Value,
            ValueIsNodeName,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "key" => Ok(GeneratedField::Key),
                            "value" => Ok(GeneratedField::Value),
                            "valueIsNodeName" | "value_is_node_name" => Ok(GeneratedField::ValueIsNodeName),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = SharedLabel;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.SharedLabel")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<SharedLabel, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut key__ = None;
                let mut value__ = None;
                let mut value_is_node_name__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Key => {
                            if key__.is_some() {
                                return Err(serde::de::Error::duplicate_field("key"));
                            }
                            key__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Value => {
                            if value__.is_some() {
                                return Err(serde::de::Error::duplicate_field("value"));
                            }
                            value__ = Some(map_.next_value()?);
                        }
                        GeneratedField::ValueIsNodeName => {
                            if value_is_node_name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("valueIsNodeName"));
                            }
                            value_is_node_name__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(SharedLabel {
                    key: key__.unwrap_or_default(),
                    value: value__.unwrap_or_default(),
                    value_is_node_name: value_is_node_name__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.SharedLabel", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for SharedMetadata {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.labels.is_empty() {
            len += 1;
        }
        if self.controller.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.SharedMetadata", len)?;
        if !self.labels.is_empty() {
            struct_ser.serialize_field("labels", &self.labels)?;
        }
        if let Some(v) = self.controller.as_ref() {
            struct_ser.serialize_field("controller", v)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for SharedMetadata {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "labels",
            "controller",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Labels,
            Controller,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "labels" => Ok(GeneratedField::Labels),
                            "controller" => Ok(GeneratedField::Controller),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = SharedMetadata;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.SharedMetadata")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<SharedMetadata, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut labels__ = None;
                let mut controller__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Labels => {
                            if labels__.is_some() {
                                return Err(serde::de::Error::duplicate_field("labels"));
                            }
                            labels__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Controller => {
                            if controller__.is_some() {
                                return Err(serde::de::Error::duplicate_field("controller"));
                            }
                            controller__ = map_.next_value()?;
                        }
                    }
                }
                Ok(SharedMetadata {
                    labels: labels__.unwrap_or_default(),
                    controller: controller__,
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.SharedMetadata", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for SimulateRequest {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.snapshot.is_some() {
            len += 1;
        }
        if self.options.is_some() {
            len += 1;
        }
        if self.assumptions.is_some() {
            len += 1;
        }
        if self.bounds.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.SimulateRequest", len)?;
        if let Some(v) = self.snapshot.as_ref() {
            struct_ser.serialize_field("snapshot", v)?;
        }
        if let Some(v) = self.options.as_ref() {
            struct_ser.serialize_field("options", v)?;
        }
        if let Some(v) = self.assumptions.as_ref() {
            struct_ser.serialize_field("assumptions", v)?;
        }
        if let Some(v) = self.bounds.as_ref() {
            struct_ser.serialize_field("bounds", v)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for SimulateRequest {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "snapshot",
            "options",
            "assumptions",
            "bounds",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Snapshot,
            Options,
            Assumptions,
            Bounds,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "snapshot" => Ok(GeneratedField::Snapshot),
                            "options" => Ok(GeneratedField::Options),
                            "assumptions" => Ok(GeneratedField::Assumptions),
                            "bounds" => Ok(GeneratedField::Bounds),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = SimulateRequest;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.SimulateRequest")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<SimulateRequest, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut snapshot__ = None;
                let mut options__ = None;
                let mut assumptions__ = None;
                let mut bounds__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Snapshot => {
                            if snapshot__.is_some() {
                                return Err(serde::de::Error::duplicate_field("snapshot"));
                            }
                            snapshot__ = map_.next_value()?;
                        }
                        GeneratedField::Options => {
                            if options__.is_some() {
                                return Err(serde::de::Error::duplicate_field("options"));
                            }
                            options__ = map_.next_value()?;
                        }
                        GeneratedField::Assumptions => {
                            if assumptions__.is_some() {
                                return Err(serde::de::Error::duplicate_field("assumptions"));
                            }
                            assumptions__ = map_.next_value()?;
                        }
                        GeneratedField::Bounds => {
                            if bounds__.is_some() {
                                return Err(serde::de::Error::duplicate_field("bounds"));
                            }
                            bounds__ = map_.next_value()?;
                        }
                    }
                }
                Ok(SimulateRequest {
                    snapshot: snapshot__,
                    options: options__,
                    assumptions: assumptions__,
                    bounds: bounds__,
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.SimulateRequest", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for SimulateResponse {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.content.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.SimulateResponse", len)?;
        if let Some(v) = self.content.as_ref() {
            match v {
                simulate_response::Content::Step(v) => {
                    struct_ser.serialize_field("step", v)?;
                }
                simulate_response::Content::End(v) => {
                    struct_ser.serialize_field("end", v)?;
                }
            }
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for SimulateResponse {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "step",
            "end",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Step,
            End,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "step" => Ok(GeneratedField::Step),
                            "end" => Ok(GeneratedField::End),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = SimulateResponse;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.SimulateResponse")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<SimulateResponse, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut content__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Step => {
                            if content__.is_some() {
                                return Err(serde::de::Error::duplicate_field("step"));
                            }
                            content__ = map_.next_value::<::std::option::Option<_>>()?.map(simulate_response::Content::Step)
;
                        }
                        GeneratedField::End => {
                            if content__.is_some() {
                                return Err(serde::de::Error::duplicate_field("end"));
                            }
                            content__ = map_.next_value::<::std::option::Option<_>>()?.map(simulate_response::Content::End)
;
                        }
                    }
                }
                Ok(SimulateResponse {
                    content: content__,
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.SimulateResponse", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for SimulationAssumptions {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.ready_after.is_some() {
            len += 1;
        }
        if self.gone_after.is_some() {
            len += 1;
        }
        if self.failing_share != 0. {
            len += 1;
        }
        if self.seed != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.SimulationAssumptions", len)?;
        if let Some(v) = self.ready_after.as_ref() {
            struct_ser.serialize_field("readyAfter", v)?;
        }
        if let Some(v) = self.gone_after.as_ref() {
            struct_ser.serialize_field("goneAfter", v)?;
        }
        if self.failing_share != 0. {
            struct_ser.serialize_field("failingShare", &self.failing_share)?;
        }
        if self.seed != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("seed", ToString::to_string(&self.seed).as_str())?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for SimulationAssumptions {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "ready_after",
            "readyAfter",
            "gone_after",
            "goneAfter",
            "failing_share",
            "failingShare",
            "seed",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            ReadyAfter,
            GoneAfter,
            FailingShare,
            Seed,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "readyAfter" | "ready_after" => Ok(GeneratedField::ReadyAfter),
                            "goneAfter" | "gone_after" => Ok(GeneratedField::GoneAfter),
                            "failingShare" | "failing_share" => Ok(GeneratedField::FailingShare),
                            "seed" => Ok(GeneratedField::Seed),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = SimulationAssumptions;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.SimulationAssumptions")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<SimulationAssumptions, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut ready_after__ = None;
                let mut gone_after__ = None;
                let mut failing_share__ = None;
                let mut seed__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::ReadyAfter => {
                            if ready_after__.is_some() {
                                return Err(serde::de::Error::duplicate_field("readyAfter"));
                            }
                            ready_after__ = map_.next_value()?;
                        }
                        GeneratedField::GoneAfter => {
                            if gone_after__.is_some() {
                                return Err(serde::de::Error::duplicate_field("goneAfter"));
                            }
                            gone_after__ = map_.next_value()?;
                        }
                        GeneratedField::FailingShare => {
                            if failing_share__.is_some() {
                                return Err(serde::de::Error::duplicate_field("failingShare"));
                            }
                            failing_share__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Seed => {
                            if seed__.is_some() {
                                return Err(serde::de::Error::duplicate_field("seed"));
                            }
                            seed__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                    }
                }
                Ok(SimulationAssumptions {
                    ready_after: ready_after__,
                    gone_after: gone_after__,
                    failing_share: failing_share__.unwrap_or_default(),
                    seed: seed__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.SimulationAssumptions", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for SimulationBounds {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.time.is_some() {
            len += 1;
        }
        if self.steps != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.SimulationBounds", len)?;
        if let Some(v) = self.time.as_ref() {
            struct_ser.serialize_field("time", v)?;
        }
        if self.steps != 0 {
            struct_ser.serialize_field("steps", &self.steps)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for SimulationBounds {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "time",
            "steps",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Time,
            Steps,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "time" => Ok(GeneratedField::Time),
                            "steps" => Ok(GeneratedField::Steps),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = SimulationBounds;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.SimulationBounds")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<SimulationBounds, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut time__ = None;
                let mut steps__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Time => {
                            if time__.is_some() {
                                return Err(serde::de::Error::duplicate_field("time"));
                            }
                            time__ = map_.next_value()?;
                        }
                        GeneratedField::Steps => {
                            if steps__.is_some() {
                                return Err(serde::de::Error::duplicate_field("steps"));
                            }
                            steps__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                    }
                }
                Ok(SimulationBounds {
                    time: time__,
                    steps: steps__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.SimulationBounds", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for SimulationBudget {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.max_unavailable != 0 {
            len += 1;
        }
        if self.max_surge != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.SimulationBudget", len)?;
        if self.max_unavailable != 0 {
            struct_ser.serialize_field("maxUnavailable", &self.max_unavailable)?;
        }
        if self.max_surge != 0 {
            struct_ser.serialize_field("maxSurge", &self.max_surge)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for SimulationBudget {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "max_unavailable",
            "maxUnavailable",
            "max_surge",
            "maxSurge",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            MaxUnavailable,
            MaxSurge,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "maxUnavailable" | "max_unavailable" => Ok(GeneratedField::MaxUnavailable),
                            "maxSurge" | "max_surge" => Ok(GeneratedField::MaxSurge),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = SimulationBudget;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.SimulationBudget")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<SimulationBudget, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut max_unavailable__ = None;
                let mut max_surge__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::MaxUnavailable => {
                            if max_unavailable__.is_some() {
                                return Err(serde::de::Error::duplicate_field("maxUnavailable"));
                            }
                            max_unavailable__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::MaxSurge => {
                            if max_surge__.is_some() {
                                return Err(serde::de::Error::duplicate_field("maxSurge"));
                            }
                            max_surge__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                    }
                }
                Ok(SimulationBudget {
                    max_unavailable: max_unavailable__.unwrap_or_default(),
                    max_surge: max_surge__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.SimulationBudget", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for SimulationChange {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.verb != 0 {
            len += 1;
        }
        if !self.resource.is_empty() {
            len += 1;
        }
        if !self.name.is_empty() {
            len += 1;
        }
        if !self.node_name.is_empty() {
            len += 1;
        }
        if self.reason != 0 {
            len += 1;
        }
        if !self.message.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.SimulationChange", len)?;
        if self.verb != 0 {
            let v = simulation_change::Verb::try_from(self.verb)
                .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", self.verb)))?;
            struct_ser.serialize_field("verb", &v)?;
        }
        if !self.resource.is_empty() {
            struct_ser.serialize_field("resource", &self.resource)?;
        }
        if !self.name.is_empty() {
            struct_ser.serialize_field("name", &self.name)?;
        }
        if !self.node_name.is_empty() {
            struct_ser.serialize_field("nodeName", &self.node_name)?;
        }
        if self.reason != 0 {
            let v = Reason::try_from(self.reason)
                .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", self.reason)))?;
            struct_ser.serialize_field("reason", &v)?;
        }
        if !self.message.is_empty() {
            struct_ser.serialize_field("message", &self.message)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for SimulationChange {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "verb",
            "resource",
            "name",
            "node_name",
            "nodeName",
            "reason",
            "message",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Verb,
            Resource,
            Name,
            NodeName,
            Reason,
            Message,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "verb" => Ok(GeneratedField::Verb),
                            "resource" => Ok(GeneratedField::Resource),
                            "name" => Ok(GeneratedField::Name),
                            "nodeName" | "node_name" => Ok(GeneratedField::NodeName),
                            "reason" => Ok(GeneratedField::Reason),
                            "message" => Ok(GeneratedField::Message),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = SimulationChange;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.SimulationChange")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<SimulationChange, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut verb__ = None;
                let mut resource__ = None;
                let mut name__ = None;
                let mut node_name__ = None;
                let mut reason__ = None;
                let mut message__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Verb => {
                            if verb__.is_some() {
                                return Err(serde::de::Error::duplicate_field("verb"));
                            }
                            verb__ = Some(map_.next_value::<simulation_change::Verb>()? as i32);
                        }
                        GeneratedField::Resource => {
                            if resource__.is_some() {
                                return Err(serde::de::Error::duplicate_field("resource"));
                            }
                            resource__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Name => {
                            if name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("name"));
                            }
                            name__ = Some(map_.next_value()?);
                        }
                        GeneratedField::NodeName => {
                            if node_name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("nodeName"));
                            }
                            node_name__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Reason => {
                            if reason__.is_some() {
                                return Err(serde::de::Error::duplicate_field("reason"));
                            }
                            reason__ = Some(map_.next_value::<Reason>()? as i32);
                        }
                        GeneratedField::Message => {
                            if message__.is_some() {
                                return Err(serde::de::Error::duplicate_field("message"));
                            }
                            message__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(SimulationChange {
                    verb: verb__.unwrap_or_default(),
                    resource: resource__.unwrap_or_default(),
                    name: name__.unwrap_or_default(),
                    node_name: node_name__.unwrap_or_default(),
                    reason: reason__.unwrap_or_default(),
                    message: message__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.SimulationChange", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for simulation_change::Verb {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        let variant = match self {
            Self::Unspecified => "VERB_UNSPECIFIED",
            Self::Create => "VERB_CREATE",
            Self::Patch => "VERB_PATCH",
            Self::Delete => "VERB_DELETE",
        };
        serializer.serialize_str(variant)
    }
}
impl<'de> serde::Deserialize<'de> for simulation_change::Verb {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "VERB_UNSPECIFIED",
            "VERB_CREATE",
            "VERB_PATCH",
            "VERB_DELETE",
        ];

        struct GeneratedVisitor;

        impl serde::de::Visitor<'_> for GeneratedVisitor {
            type Value = simulation_change::Verb;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(formatter, "expected one of: {:?}", &FIELDS)
            }

            fn visit_i64<E>(self, v: i64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Signed(v), &self)
                    })
            }

            fn visit_u64<E>(self, v: u64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Unsigned(v), &self)
                    })
            }

            fn visit_str<E>(self, value: &str) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                match value {
                    "VERB_UNSPECIFIED" => Ok(simulation_change::Verb::Unspecified),
                    "VERB_CREATE" => Ok(simulation_change::Verb::Create),
                    "VERB_PATCH" => Ok(simulation_change::Verb::Patch),
                    "VERB_DELETE" => Ok(simulation_change::Verb::Delete),
                    _ => Err(serde::de::Error::unknown_variant(value, FIELDS)),
                }
            }
        }
        deserializer.deserialize_any(GeneratedVisitor)
    }
}
impl serde::Serialize for SimulationCounts {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.desired != 0 {
            len += 1;
        }
        if self.updated != 0 {
            len += 1;
        }
        if self.ready != 0 {
            len += 1;
        }
        if self.available != 0 {
            len += 1;
        }
        if self.unavailable != 0 {
            len += 1;
        }
        if self.surging != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.SimulationCounts", len)?;
        if self.desired != 0 {
            struct_ser.serialize_field("desired", &self.desired)?;
        }
        if self.updated != 0 {
            struct_ser.serialize_field("updated", &self.updated)?;
        }
        if self.ready != 0 {
            struct_ser.serialize_field("ready", &self.ready)?;
        }
        if self.available != 0 {
            struct_ser.serialize_field("available", &self.available)?;
        }
        if self.unavailable != 0 {
            struct_ser.serialize_field("unavailable", &self.unavailable)?;
        }
        if self.surging != 0 {
            struct_ser.serialize_field("surging", &self.surging)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for SimulationCounts {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "desired",
            "updated",
            "ready",
            "available",
            "unavailable",
            "surging",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Desired,
            Updated,
            Ready,
            Available,
            Unavailable,
            Surging,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "desired" => Ok(GeneratedField::Desired),
                            "updated" => Ok(GeneratedField::Updated),
                            "ready" => Ok(GeneratedField::Ready),
                            "available" => Ok(GeneratedField::Available),
                            "unavailable" => Ok(GeneratedField::Unavailable),
                            "surging" => Ok(GeneratedField::Surging),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = SimulationCounts;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.SimulationCounts")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<SimulationCounts, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut desired__ = None;
                let mut updated__ = None;
                let mut ready__ = None;
                let mut available__ = None;
                let mut unavailable__ = None;
                let mut surging__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Desired => {
                            if desired__.is_some() {
                                return Err(serde::de::Error::duplicate_field("desired"));
                            }
                            desired__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Updated => {
                            if updated__.is_some() {
                                return Err(serde::de::Error::duplicate_field("updated"));
                            }
                            updated__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Ready => {
                            if ready__.is_some() {
                                return Err(serde::de::Error::duplicate_field("ready"));
                            }
                            ready__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Available => {
                            if available__.is_some() {
                                return Err(serde::de::Error::duplicate_field("available"));
                            }
                            available__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Unavailable => {
                            if unavailable__.is_some() {
                                return Err(serde::de::Error::duplicate_field("unavailable"));
                            }
                            unavailable__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Surging => {
                            if surging__.is_some() {
                                return Err(serde::de::Error::duplicate_field("surging"));
                            }
                            surging__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                    }
                }
                Ok(SimulationCounts {
                    desired: desired__.unwrap_or_default(),
                    updated: updated__.unwrap_or_default(),
                    ready: ready__.unwrap_or_default(),
                    available: available__.unwrap_or_default(),
                    unavailable: unavailable__.unwrap_or_default(),
                    surging: surging__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.SimulationCounts", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for SimulationEnd {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.result != 0 {
            len += 1;
        }
        if !self.cause.is_empty() {
            len += 1;
        }
        if !self.blocking.is_empty() {
            len += 1;
        }
        if self.took.is_some() {
            len += 1;
        }
        if self.steps != 0 {
            len += 1;
        }
        if self.plans != 0 {
            len += 1;
        }
        if self.counts.is_some() {
            len += 1;
        }
        if self.worst_unavailable != 0 {
            len += 1;
        }
        if self.worst_surging != 0 {
            len += 1;
        }
        if self.budget.is_some() {
            len += 1;
        }
        if self.failed_pods != 0 {
            len += 1;
        }
        if !self.warnings.is_empty() {
            len += 1;
        }
        if self.more_warnings != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.SimulationEnd", len)?;
        if self.result != 0 {
            let v = simulation_end::Result::try_from(self.result)
                .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", self.result)))?;
            struct_ser.serialize_field("result", &v)?;
        }
        if !self.cause.is_empty() {
            struct_ser.serialize_field("cause", &self.cause)?;
        }
        if !self.blocking.is_empty() {
            struct_ser.serialize_field("blocking", &self.blocking)?;
        }
        if let Some(v) = self.took.as_ref() {
            struct_ser.serialize_field("took", v)?;
        }
        if self.steps != 0 {
            struct_ser.serialize_field("steps", &self.steps)?;
        }
        if self.plans != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("plans", ToString::to_string(&self.plans).as_str())?;
        }
        if let Some(v) = self.counts.as_ref() {
            struct_ser.serialize_field("counts", v)?;
        }
        if self.worst_unavailable != 0 {
            struct_ser.serialize_field("worstUnavailable", &self.worst_unavailable)?;
        }
        if self.worst_surging != 0 {
            struct_ser.serialize_field("worstSurging", &self.worst_surging)?;
        }
        if let Some(v) = self.budget.as_ref() {
            struct_ser.serialize_field("budget", v)?;
        }
        if self.failed_pods != 0 {
            struct_ser.serialize_field("failedPods", &self.failed_pods)?;
        }
        if !self.warnings.is_empty() {
            struct_ser.serialize_field("warnings", &self.warnings)?;
        }
        if self.more_warnings != 0 {
            struct_ser.serialize_field("moreWarnings", &self.more_warnings)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for SimulationEnd {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "result",
            "cause",
            "blocking",
            "took",
            "steps",
            "plans",
            "counts",
            "worst_unavailable",
            "worstUnavailable",
            "worst_surging",
            "worstSurging",
            "budget",
            "failed_pods",
            "failedPods",
            "warnings",
            "more_warnings",
            "moreWarnings",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Result,
            Cause,
            Blocking,
            Took,
            Steps,
            Plans,
            Counts,
            WorstUnavailable,
            WorstSurging,
            Budget,
            FailedPods,
            Warnings,
            MoreWarnings,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "result" => Ok(GeneratedField::Result),
                            "cause" => Ok(GeneratedField::Cause),
                            "blocking" => Ok(GeneratedField::Blocking),
                            "took" => Ok(GeneratedField::Took),
                            "steps" => Ok(GeneratedField::Steps),
                            "plans" => Ok(GeneratedField::Plans),
                            "counts" => Ok(GeneratedField::Counts),
                            "worstUnavailable" | "worst_unavailable" => Ok(GeneratedField::WorstUnavailable),
                            "worstSurging" | "worst_surging" => Ok(GeneratedField::WorstSurging),
                            "budget" => Ok(GeneratedField::Budget),
                            "failedPods" | "failed_pods" => Ok(GeneratedField::FailedPods),
                            "warnings" => Ok(GeneratedField::Warnings),
                            "moreWarnings" | "more_warnings" => Ok(GeneratedField::MoreWarnings),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = SimulationEnd;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.SimulationEnd")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<SimulationEnd, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut result__ = None;
                let mut cause__ = None;
                let mut blocking__ = None;
                let mut took__ = None;
                let mut steps__ = None;
                let mut plans__ = None;
                let mut counts__ = None;
                let mut worst_unavailable__ = None;
                let mut worst_surging__ = None;
                let mut budget__ = None;
                let mut failed_pods__ = None;
                let mut warnings__ = None;
                let mut more_warnings__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Result => {
                            if result__.is_some() {
                                return Err(serde::de::Error::duplicate_field("result"));
                            }
                            result__ = Some(map_.next_value::<simulation_end::Result>()? as i32);
                        }
                        GeneratedField::Cause => {
                            if cause__.is_some() {
                                return Err(serde::de::Error::duplicate_field("cause"));
                            }
                            cause__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Blocking => {
                            if blocking__.is_some() {
                                return Err(serde::de::Error::duplicate_field("blocking"));
                            }
                            blocking__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Took => {
                            if took__.is_some() {
                                return Err(serde::de::Error::duplicate_field("took"));
                            }
                            took__ = map_.next_value()?;
                        }
                        GeneratedField::Steps => {
                            if steps__.is_some() {
                                return Err(serde::de::Error::duplicate_field("steps"));
                            }
                            steps__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Plans => {
                            if plans__.is_some() {
                                return Err(serde::de::Error::duplicate_field("plans"));
                            }
                            plans__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Counts => {
                            if counts__.is_some() {
                                return Err(serde::de::Error::duplicate_field("counts"));
                            }
                            counts__ = map_.next_value()?;
                        }
                        GeneratedField::WorstUnavailable => {
                            if worst_unavailable__.is_some() {
                                return Err(serde::de::Error::duplicate_field("worstUnavailable"));
                            }
                            worst_unavailable__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::WorstSurging => {
                            if worst_surging__.is_some() {
                                return Err(serde::de::Error::duplicate_field("worstSurging"));
                            }
                            worst_surging__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Budget => {
                            if budget__.is_some() {
                                return Err(serde::de::Error::duplicate_field("budget"));
                            }
                            budget__ = map_.next_value()?;
                        }
                        GeneratedField::FailedPods => {
                            if failed_pods__.is_some() {
                                return Err(serde::de::Error::duplicate_field("failedPods"));
                            }
                            failed_pods__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Warnings => {
                            if warnings__.is_some() {
                                return Err(serde::de::Error::duplicate_field("warnings"));
                            }
                            warnings__ = Some(map_.next_value()?);
                        }
                        GeneratedField::MoreWarnings => {
                            if more_warnings__.is_some() {
                                return Err(serde::de::Error::duplicate_field("moreWarnings"));
                            }
                            more_warnings__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                    }
                }
                Ok(SimulationEnd {
                    result: result__.unwrap_or_default(),
                    cause: cause__.unwrap_or_default(),
                    blocking: blocking__.unwrap_or_default(),
                    took: took__,
                    steps: steps__.unwrap_or_default(),
                    plans: plans__.unwrap_or_default(),
                    counts: counts__,
                    worst_unavailable: worst_unavailable__.unwrap_or_default(),
                    worst_surging: worst_surging__.unwrap_or_default(),
                    budget: budget__,
                    failed_pods: failed_pods__.unwrap_or_default(),
                    warnings: warnings__.unwrap_or_default(),
                    more_warnings: more_warnings__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.SimulationEnd", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for simulation_end::Result {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        let variant = match self {
            Self::Unspecified => "RESULT_UNSPECIFIED",
            Self::Done => "RESULT_DONE",
            Self::Stuck => "RESULT_STUCK",
            Self::TimeBound => "RESULT_TIME_BOUND",
            Self::StepBound => "RESULT_STEP_BOUND",
        };
        serializer.serialize_str(variant)
    }
}
impl<'de> serde::Deserialize<'de> for simulation_end::Result {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "RESULT_UNSPECIFIED",
            "RESULT_DONE",
            "RESULT_STUCK",
            "RESULT_TIME_BOUND",
            "RESULT_STEP_BOUND",
        ];

        struct GeneratedVisitor;

        impl serde::de::Visitor<'_> for GeneratedVisitor {
            type Value = simulation_end::Result;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(formatter, "expected one of: {:?}", &FIELDS)
            }

            fn visit_i64<E>(self, v: i64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Signed(v), &self)
                    })
            }

            fn visit_u64<E>(self, v: u64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Unsigned(v), &self)
                    })
            }

            fn visit_str<E>(self, value: &str) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                match value {
                    "RESULT_UNSPECIFIED" => Ok(simulation_end::Result::Unspecified),
                    "RESULT_DONE" => Ok(simulation_end::Result::Done),
                    "RESULT_STUCK" => Ok(simulation_end::Result::Stuck),
                    "RESULT_TIME_BOUND" => Ok(simulation_end::Result::TimeBound),
                    "RESULT_STEP_BOUND" => Ok(simulation_end::Result::StepBound),
                    _ => Err(serde::de::Error::unknown_variant(value, FIELDS)),
                }
            }
        }
        deserializer.deserialize_any(GeneratedVisitor)
    }
}
impl serde::Serialize for SimulationStep {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.at.is_some() {
            len += 1;
        }
        if !self.changes.is_empty() {
            len += 1;
        }
        if self.counts.is_some() {
            len += 1;
        }
        if self.worst_unavailable != 0 {
            len += 1;
        }
        if self.worst_surging != 0 {
            len += 1;
        }
        if self.budget.is_some() {
            len += 1;
        }
        if self.continues {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.SimulationStep", len)?;
        if let Some(v) = self.at.as_ref() {
            struct_ser.serialize_field("at", v)?;
        }
        if !self.changes.is_empty() {
            struct_ser.serialize_field("changes", &self.changes)?;
        }
        if let Some(v) = self.counts.as_ref() {
            struct_ser.serialize_field("counts", v)?;
        }
        if self.worst_unavailable != 0 {
            struct_ser.serialize_field("worstUnavailable", &self.worst_unavailable)?;
        }
        if self.worst_surging != 0 {
            struct_ser.serialize_field("worstSurging", &self.worst_surging)?;
        }
        if let Some(v) = self.budget.as_ref() {
            struct_ser.serialize_field("budget", v)?;
        }
        if self.continues {
            struct_ser.serialize_field("continues", &self.continues)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for SimulationStep {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "at",
            "changes",
            "counts",
            "worst_unavailable",
            "worstUnavailable",
            "worst_surging",
            "worstSurging",
            "budget",
            "continues",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            At,
            Changes,
            Counts,
            WorstUnavailable,
            WorstSurging,
            Budget,
            Continues,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "at" => Ok(GeneratedField::At),
                            "changes" => Ok(GeneratedField::Changes),
                            "counts" => Ok(GeneratedField::Counts),
                            "worstUnavailable" | "worst_unavailable" => Ok(GeneratedField::WorstUnavailable),
                            "worstSurging" | "worst_surging" => Ok(GeneratedField::WorstSurging),
                            "budget" => Ok(GeneratedField::Budget),
                            "continues" => Ok(GeneratedField::Continues),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = SimulationStep;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.SimulationStep")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<SimulationStep, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut at__ = None;
                let mut changes__ = None;
                let mut counts__ = None;
                let mut worst_unavailable__ = None;
                let mut worst_surging__ = None;
                let mut budget__ = None;
                let mut continues__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::At => {
                            if at__.is_some() {
                                return Err(serde::de::Error::duplicate_field("at"));
                            }
                            at__ = map_.next_value()?;
                        }
                        GeneratedField::Changes => {
                            if changes__.is_some() {
                                return Err(serde::de::Error::duplicate_field("changes"));
                            }
                            changes__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Counts => {
                            if counts__.is_some() {
                                return Err(serde::de::Error::duplicate_field("counts"));
                            }
                            counts__ = map_.next_value()?;
                        }
                        GeneratedField::WorstUnavailable => {
                            if worst_unavailable__.is_some() {
                                return Err(serde::de::Error::duplicate_field("worstUnavailable"));
                            }
                            worst_unavailable__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::WorstSurging => {
                            if worst_surging__.is_some() {
                                return Err(serde::de::Error::duplicate_field("worstSurging"));
                            }
                            worst_surging__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Budget => {
                            if budget__.is_some() {
                                return Err(serde::de::Error::duplicate_field("budget"));
                            }
                            budget__ = map_.next_value()?;
                        }
                        GeneratedField::Continues => {
                            if continues__.is_some() {
                                return Err(serde::de::Error::duplicate_field("continues"));
                            }
                            continues__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(SimulationStep {
                    at: at__,
                    changes: changes__.unwrap_or_default(),
                    counts: counts__,
                    worst_unavailable: worst_unavailable__.unwrap_or_default(),
                    worst_surging: worst_surging__.unwrap_or_default(),
                    budget: budget__,
                    continues: continues__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.SimulationStep", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for SlowStart {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.size != 0 {
            len += 1;
        }
        if !self.revision_hash.is_empty() {
            len += 1;
        }
        if self.last.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.SlowStart", len)?;
        if self.size != 0 {
            struct_ser.serialize_field("size", &self.size)?;
        }
        if !self.revision_hash.is_empty() {
            struct_ser.serialize_field("revisionHash", &self.revision_hash)?;
        }
        if let Some(v) = self.last.as_ref() {
            struct_ser.serialize_field("last", v)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for SlowStart {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "size",
            "revision_hash",
            "revisionHash",
            "last",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Size,
            RevisionHash,
            Last,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "size" => Ok(GeneratedField::Size),
                            "revisionHash" | "revision_hash" => Ok(GeneratedField::RevisionHash),
                            "last" => Ok(GeneratedField::Last),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = SlowStart;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.SlowStart")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<SlowStart, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut size__ = None;
                let mut revision_hash__ = None;
                let mut last__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Size => {
                            if size__.is_some() {
                                return Err(serde::de::Error::duplicate_field("size"));
                            }
                            size__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::RevisionHash => {
                            if revision_hash__.is_some() {
                                return Err(serde::de::Error::duplicate_field("revisionHash"));
                            }
                            revision_hash__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Last => {
                            if last__.is_some() {
                                return Err(serde::de::Error::duplicate_field("last"));
                            }
                            last__ = map_.next_value()?;
                        }
                    }
                }
                Ok(SlowStart {
                    size: size__.unwrap_or_default(),
                    revision_hash: revision_hash__.unwrap_or_default(),
                    last: last__,
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.SlowStart", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Snapshot {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.now.is_some() {
            len += 1;
        }
        if self.workload.is_some() {
            len += 1;
        }
        if !self.revisions.is_empty() {
            len += 1;
        }
        if self.caches_synced {
            len += 1;
        }
        if self.bucket_count != 0 {
            len += 1;
        }
        if !self.node_buckets.is_empty() {
            len += 1;
        }
        if !self.pod_buckets.is_empty() {
            len += 1;
        }
        if self.digest_function != 0 {
            len += 1;
        }
        if self.state.is_some() {
            len += 1;
        }
        if !self.own_writes.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.Snapshot", len)?;
        if let Some(v) = self.now.as_ref() {
            struct_ser.serialize_field("now", v)?;
        }
        if let Some(v) = self.workload.as_ref() {
            struct_ser.serialize_field("workload", v)?;
        }
        if !self.revisions.is_empty() {
            struct_ser.serialize_field("revisions", &self.revisions)?;
        }
        if self.caches_synced {
            struct_ser.serialize_field("cachesSynced", &self.caches_synced)?;
        }
        if self.bucket_count != 0 {
            struct_ser.serialize_field("bucketCount", &self.bucket_count)?;
        }
        if !self.node_buckets.is_empty() {
            struct_ser.serialize_field("nodeBuckets", &self.node_buckets)?;
        }
        if !self.pod_buckets.is_empty() {
            struct_ser.serialize_field("podBuckets", &self.pod_buckets)?;
        }
        if self.digest_function != 0 {
            let v = DigestFunction::try_from(self.digest_function)
                .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", self.digest_function)))?;
            struct_ser.serialize_field("digestFunction", &v)?;
        }
        if let Some(v) = self.state.as_ref() {
            struct_ser.serialize_field("state", v)?;
        }
        if !self.own_writes.is_empty() {
            struct_ser.serialize_field("ownWrites", &self.own_writes)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Snapshot {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "now",
            "workload",
            "revisions",
            "caches_synced",
            "cachesSynced",
            "bucket_count",
            "bucketCount",
            "node_buckets",
            "nodeBuckets",
            "pod_buckets",
            "podBuckets",
            "digest_function",
            "digestFunction",
            "state",
            "own_writes",
            "ownWrites",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Now,
            Workload,
            Revisions,
            CachesSynced,
            BucketCount,
            NodeBuckets,
            PodBuckets,
            DigestFunction,
            State,
            OwnWrites,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "now" => Ok(GeneratedField::Now),
                            "workload" => Ok(GeneratedField::Workload),
                            "revisions" => Ok(GeneratedField::Revisions),
                            "cachesSynced" | "caches_synced" => Ok(GeneratedField::CachesSynced),
                            "bucketCount" | "bucket_count" => Ok(GeneratedField::BucketCount),
                            "nodeBuckets" | "node_buckets" => Ok(GeneratedField::NodeBuckets),
                            "podBuckets" | "pod_buckets" => Ok(GeneratedField::PodBuckets),
                            "digestFunction" | "digest_function" => Ok(GeneratedField::DigestFunction),
                            "state" => Ok(GeneratedField::State),
                            "ownWrites" | "own_writes" => Ok(GeneratedField::OwnWrites),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Snapshot;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.Snapshot")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Snapshot, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut now__ = None;
                let mut workload__ = None;
                let mut revisions__ = None;
                let mut caches_synced__ = None;
                let mut bucket_count__ = None;
                let mut node_buckets__ = None;
                let mut pod_buckets__ = None;
                let mut digest_function__ = None;
                let mut state__ = None;
                let mut own_writes__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Now => {
                            if now__.is_some() {
                                return Err(serde::de::Error::duplicate_field("now"));
                            }
                            now__ = map_.next_value()?;
                        }
                        GeneratedField::Workload => {
                            if workload__.is_some() {
                                return Err(serde::de::Error::duplicate_field("workload"));
                            }
                            workload__ = map_.next_value()?;
                        }
                        GeneratedField::Revisions => {
                            if revisions__.is_some() {
                                return Err(serde::de::Error::duplicate_field("revisions"));
                            }
                            revisions__ = Some(map_.next_value()?);
                        }
                        GeneratedField::CachesSynced => {
                            if caches_synced__.is_some() {
                                return Err(serde::de::Error::duplicate_field("cachesSynced"));
                            }
                            caches_synced__ = Some(map_.next_value()?);
                        }
                        GeneratedField::BucketCount => {
                            if bucket_count__.is_some() {
                                return Err(serde::de::Error::duplicate_field("bucketCount"));
                            }
                            bucket_count__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::NodeBuckets => {
                            if node_buckets__.is_some() {
                                return Err(serde::de::Error::duplicate_field("nodeBuckets"));
                            }
                            node_buckets__ = Some(map_.next_value()?);
                        }
                        GeneratedField::PodBuckets => {
                            if pod_buckets__.is_some() {
                                return Err(serde::de::Error::duplicate_field("podBuckets"));
                            }
                            pod_buckets__ = Some(map_.next_value()?);
                        }
                        GeneratedField::DigestFunction => {
                            if digest_function__.is_some() {
                                return Err(serde::de::Error::duplicate_field("digestFunction"));
                            }
                            digest_function__ = Some(map_.next_value::<DigestFunction>()? as i32);
                        }
                        GeneratedField::State => {
                            if state__.is_some() {
                                return Err(serde::de::Error::duplicate_field("state"));
                            }
                            state__ = map_.next_value()?;
                        }
                        GeneratedField::OwnWrites => {
                            if own_writes__.is_some() {
                                return Err(serde::de::Error::duplicate_field("ownWrites"));
                            }
                            own_writes__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(Snapshot {
                    now: now__,
                    workload: workload__,
                    revisions: revisions__.unwrap_or_default(),
                    caches_synced: caches_synced__.unwrap_or_default(),
                    bucket_count: bucket_count__.unwrap_or_default(),
                    node_buckets: node_buckets__.unwrap_or_default(),
                    pod_buckets: pod_buckets__.unwrap_or_default(),
                    digest_function: digest_function__.unwrap_or_default(),
                    state: state__,
                    own_writes: own_writes__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.Snapshot", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Taint {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.key.is_empty() {
            len += 1;
        }
        if !self.value.is_empty() {
            len += 1;
        }
        if !self.effect.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.Taint", len)?;
        if !self.key.is_empty() {
            struct_ser.serialize_field("key", &self.key)?;
        }
        if !self.value.is_empty() {
            struct_ser.serialize_field("value", &self.value)?;
        }
        if !self.effect.is_empty() {
            struct_ser.serialize_field("effect", &self.effect)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Taint {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "key",
            "value",
            "effect",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Key,
            Value,
            Effect,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "key" => Ok(GeneratedField::Key),
                            "value" => Ok(GeneratedField::Value),
                            "effect" => Ok(GeneratedField::Effect),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Taint;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.Taint")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Taint, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut key__ = None;
                let mut value__ = None;
                let mut effect__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Key => {
                            if key__.is_some() {
                                return Err(serde::de::Error::duplicate_field("key"));
                            }
                            key__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Value => {
                            if value__.is_some() {
                                return Err(serde::de::Error::duplicate_field("value"));
                            }
                            value__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Effect => {
                            if effect__.is_some() {
                                return Err(serde::de::Error::duplicate_field("effect"));
                            }
                            effect__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(Taint {
                    key: key__.unwrap_or_default(),
                    value: value__.unwrap_or_default(),
                    effect: effect__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.Taint", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for UnitCounts {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.desired != 0 {
            len += 1;
        }
        if self.done != 0 {
            len += 1;
        }
        if self.progressing != 0 {
            len += 1;
        }
        if self.blocked != 0 {
            len += 1;
        }
        if self.waiting != 0 {
            len += 1;
        }
        if self.must_not_run != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.UnitCounts", len)?;
        if self.desired != 0 {
            struct_ser.serialize_field("desired", &self.desired)?;
        }
        if self.done != 0 {
            struct_ser.serialize_field("done", &self.done)?;
        }
        if self.progressing != 0 {
            struct_ser.serialize_field("progressing", &self.progressing)?;
        }
        if self.blocked != 0 {
            struct_ser.serialize_field("blocked", &self.blocked)?;
        }
        if self.waiting != 0 {
            struct_ser.serialize_field("waiting", &self.waiting)?;
        }
        if self.must_not_run != 0 {
            struct_ser.serialize_field("mustNotRun", &self.must_not_run)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for UnitCounts {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "desired",
            "done",
            "progressing",
            "blocked",
            "waiting",
            "must_not_run",
            "mustNotRun",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Desired,
            Done,
            Progressing,
            Blocked,
            Waiting,
            MustNotRun,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "desired" => Ok(GeneratedField::Desired),
                            "done" => Ok(GeneratedField::Done),
                            "progressing" => Ok(GeneratedField::Progressing),
                            "blocked" => Ok(GeneratedField::Blocked),
                            "waiting" => Ok(GeneratedField::Waiting),
                            "mustNotRun" | "must_not_run" => Ok(GeneratedField::MustNotRun),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = UnitCounts;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.UnitCounts")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<UnitCounts, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut desired__ = None;
                let mut done__ = None;
                let mut progressing__ = None;
                let mut blocked__ = None;
                let mut waiting__ = None;
                let mut must_not_run__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Desired => {
                            if desired__.is_some() {
                                return Err(serde::de::Error::duplicate_field("desired"));
                            }
                            desired__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Done => {
                            if done__.is_some() {
                                return Err(serde::de::Error::duplicate_field("done"));
                            }
                            done__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Progressing => {
                            if progressing__.is_some() {
                                return Err(serde::de::Error::duplicate_field("progressing"));
                            }
                            progressing__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Blocked => {
                            if blocked__.is_some() {
                                return Err(serde::de::Error::duplicate_field("blocked"));
                            }
                            blocked__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Waiting => {
                            if waiting__.is_some() {
                                return Err(serde::de::Error::duplicate_field("waiting"));
                            }
                            waiting__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::MustNotRun => {
                            if must_not_run__.is_some() {
                                return Err(serde::de::Error::duplicate_field("mustNotRun"));
                            }
                            must_not_run__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                    }
                }
                Ok(UnitCounts {
                    desired: desired__.unwrap_or_default(),
                    done: done__.unwrap_or_default(),
                    progressing: progressing__.unwrap_or_default(),
                    blocked: blocked__.unwrap_or_default(),
                    waiting: waiting__.unwrap_or_default(),
                    must_not_run: must_not_run__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.UnitCounts", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for UnitState {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        let variant = match self {
            Self::Unspecified => "UNIT_STATE_UNSPECIFIED",
            Self::Done => "UNIT_STATE_DONE",
            Self::Progressing => "UNIT_STATE_PROGRESSING",
            Self::Blocked => "UNIT_STATE_BLOCKED",
            Self::Waiting => "UNIT_STATE_WAITING",
            Self::MustNotRun => "UNIT_STATE_MUST_NOT_RUN",
        };
        serializer.serialize_str(variant)
    }
}
impl<'de> serde::Deserialize<'de> for UnitState {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "UNIT_STATE_UNSPECIFIED",
            "UNIT_STATE_DONE",
            "UNIT_STATE_PROGRESSING",
            "UNIT_STATE_BLOCKED",
            "UNIT_STATE_WAITING",
            "UNIT_STATE_MUST_NOT_RUN",
        ];

        struct GeneratedVisitor;

        impl serde::de::Visitor<'_> for GeneratedVisitor {
            type Value = UnitState;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(formatter, "expected one of: {:?}", &FIELDS)
            }

            fn visit_i64<E>(self, v: i64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Signed(v), &self)
                    })
            }

            fn visit_u64<E>(self, v: u64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Unsigned(v), &self)
                    })
            }

            fn visit_str<E>(self, value: &str) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                match value {
                    "UNIT_STATE_UNSPECIFIED" => Ok(UnitState::Unspecified),
                    "UNIT_STATE_DONE" => Ok(UnitState::Done),
                    "UNIT_STATE_PROGRESSING" => Ok(UnitState::Progressing),
                    "UNIT_STATE_BLOCKED" => Ok(UnitState::Blocked),
                    "UNIT_STATE_WAITING" => Ok(UnitState::Waiting),
                    "UNIT_STATE_MUST_NOT_RUN" => Ok(UnitState::MustNotRun),
                    _ => Err(serde::de::Error::unknown_variant(value, FIELDS)),
                }
            }
        }
        deserializer.deserialize_any(GeneratedVisitor)
    }
}
impl serde::Serialize for UpdateRevision {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.revision.is_some() {
            len += 1;
        }
        if !self.patch.is_empty() {
            len += 1;
        }
        if self.revision_number.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.UpdateRevision", len)?;
        if let Some(v) = self.revision.as_ref() {
            struct_ser.serialize_field("revision", v)?;
        }
        if !self.patch.is_empty() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("patch", pbjson::private::base64::encode(&self.patch).as_str())?;
        }
        if let Some(v) = self.revision_number.as_ref() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("revisionNumber", ToString::to_string(&v).as_str())?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for UpdateRevision {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "revision",
            "patch",
            "revision_number",
            "revisionNumber",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Revision,
            Patch,
            RevisionNumber,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "revision" => Ok(GeneratedField::Revision),
                            "patch" => Ok(GeneratedField::Patch),
                            "revisionNumber" | "revision_number" => Ok(GeneratedField::RevisionNumber),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = UpdateRevision;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.UpdateRevision")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<UpdateRevision, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut revision__ = None;
                let mut patch__ = None;
                let mut revision_number__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Revision => {
                            if revision__.is_some() {
                                return Err(serde::de::Error::duplicate_field("revision"));
                            }
                            revision__ = map_.next_value()?;
                        }
                        GeneratedField::Patch => {
                            if patch__.is_some() {
                                return Err(serde::de::Error::duplicate_field("patch"));
                            }
                            patch__ = 
                                Some(map_.next_value::<::pbjson::private::BytesDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::RevisionNumber => {
                            if revision_number__.is_some() {
                                return Err(serde::de::Error::duplicate_field("revisionNumber"));
                            }
                            revision_number__ = 
                                map_.next_value::<::std::option::Option<::pbjson::private::NumberDeserialize<_>>>()?.map(|x| x.0)
                            ;
                        }
                    }
                }
                Ok(UpdateRevision {
                    revision: revision__,
                    patch: patch__.unwrap_or_default(),
                    revision_number: revision_number__,
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.UpdateRevision", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for UpdateStatus {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.status.is_some() {
            len += 1;
        }
        if self.collision_count.is_some() {
            len += 1;
        }
        if self.expected_collision_count.is_some() {
            len += 1;
        }
        if self.uid_precondition {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.UpdateStatus", len)?;
        if let Some(v) = self.status.as_ref() {
            struct_ser.serialize_field("status", v)?;
        }
        if let Some(v) = self.collision_count.as_ref() {
            struct_ser.serialize_field("collisionCount", v)?;
        }
        if let Some(v) = self.expected_collision_count.as_ref() {
            struct_ser.serialize_field("expectedCollisionCount", v)?;
        }
        if self.uid_precondition {
            struct_ser.serialize_field("uidPrecondition", &self.uid_precondition)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for UpdateStatus {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "status",
            "collision_count",
            "collisionCount",
            "expected_collision_count",
            "expectedCollisionCount",
            "uid_precondition",
            "uidPrecondition",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Status,
            CollisionCount,
            ExpectedCollisionCount,
            UidPrecondition,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "status" => Ok(GeneratedField::Status),
                            "collisionCount" | "collision_count" => Ok(GeneratedField::CollisionCount),
                            "expectedCollisionCount" | "expected_collision_count" => Ok(GeneratedField::ExpectedCollisionCount),
                            "uidPrecondition" | "uid_precondition" => Ok(GeneratedField::UidPrecondition),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = UpdateStatus;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.UpdateStatus")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<UpdateStatus, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut status__ = None;
                let mut collision_count__ = None;
                let mut expected_collision_count__ = None;
                let mut uid_precondition__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Status => {
                            if status__.is_some() {
                                return Err(serde::de::Error::duplicate_field("status"));
                            }
                            status__ = map_.next_value()?;
                        }
                        GeneratedField::CollisionCount => {
                            if collision_count__.is_some() {
                                return Err(serde::de::Error::duplicate_field("collisionCount"));
                            }
                            collision_count__ = 
                                map_.next_value::<::std::option::Option<::pbjson::private::NumberDeserialize<_>>>()?.map(|x| x.0)
                            ;
                        }
                        GeneratedField::ExpectedCollisionCount => {
                            if expected_collision_count__.is_some() {
                                return Err(serde::de::Error::duplicate_field("expectedCollisionCount"));
                            }
                            expected_collision_count__ = 
                                map_.next_value::<::std::option::Option<::pbjson::private::NumberDeserialize<_>>>()?.map(|x| x.0)
                            ;
                        }
                        GeneratedField::UidPrecondition => {
                            if uid_precondition__.is_some() {
                                return Err(serde::de::Error::duplicate_field("uidPrecondition"));
                            }
                            uid_precondition__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(UpdateStatus {
                    status: status__,
                    collision_count: collision_count__,
                    expected_collision_count: expected_collision_count__,
                    uid_precondition: uid_precondition__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.UpdateStatus", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for UpdateStrategy {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.r#type.is_empty() {
            len += 1;
        }
        if self.max_unavailable != 0 {
            len += 1;
        }
        if self.max_surge != 0 {
            len += 1;
        }
        if self.unavailable != 0 {
            len += 1;
        }
        if self.surging != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.UpdateStrategy", len)?;
        if !self.r#type.is_empty() {
            struct_ser.serialize_field("type", &self.r#type)?;
        }
        if self.max_unavailable != 0 {
            struct_ser.serialize_field("maxUnavailable", &self.max_unavailable)?;
        }
        if self.max_surge != 0 {
            struct_ser.serialize_field("maxSurge", &self.max_surge)?;
        }
        if self.unavailable != 0 {
            struct_ser.serialize_field("unavailable", &self.unavailable)?;
        }
        if self.surging != 0 {
            struct_ser.serialize_field("surging", &self.surging)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for UpdateStrategy {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "type",
            "max_unavailable",
            "maxUnavailable",
            "max_surge",
            "maxSurge",
            "unavailable",
            "surging",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Type,
            MaxUnavailable,
            MaxSurge,
            Unavailable,
            Surging,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "type" => Ok(GeneratedField::Type),
                            "maxUnavailable" | "max_unavailable" => Ok(GeneratedField::MaxUnavailable),
                            "maxSurge" | "max_surge" => Ok(GeneratedField::MaxSurge),
                            "unavailable" => Ok(GeneratedField::Unavailable),
                            "surging" => Ok(GeneratedField::Surging),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = UpdateStrategy;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.UpdateStrategy")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<UpdateStrategy, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut r#type__ = None;
                let mut max_unavailable__ = None;
                let mut max_surge__ = None;
                let mut unavailable__ = None;
                let mut surging__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Type => {
                            if r#type__.is_some() {
                                return Err(serde::de::Error::duplicate_field("type"));
                            }
                            r#type__ = Some(map_.next_value()?);
                        }
                        GeneratedField::MaxUnavailable => {
                            if max_unavailable__.is_some() {
                                return Err(serde::de::Error::duplicate_field("maxUnavailable"));
                            }
                            max_unavailable__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::MaxSurge => {
                            if max_surge__.is_some() {
                                return Err(serde::de::Error::duplicate_field("maxSurge"));
                            }
                            max_surge__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Unavailable => {
                            if unavailable__.is_some() {
                                return Err(serde::de::Error::duplicate_field("unavailable"));
                            }
                            unavailable__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Surging => {
                            if surging__.is_some() {
                                return Err(serde::de::Error::duplicate_field("surging"));
                            }
                            surging__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                    }
                }
                Ok(UpdateStrategy {
                    r#type: r#type__.unwrap_or_default(),
                    max_unavailable: max_unavailable__.unwrap_or_default(),
                    max_surge: max_surge__.unwrap_or_default(),
                    unavailable: unavailable__.unwrap_or_default(),
                    surging: surging__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.UpdateStrategy", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for UsedPodName {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.node_name.is_empty() {
            len += 1;
        }
        if !self.pod_name.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.UsedPodName", len)?;
        if !self.node_name.is_empty() {
            struct_ser.serialize_field("nodeName", &self.node_name)?;
        }
        if !self.pod_name.is_empty() {
            struct_ser.serialize_field("podName", &self.pod_name)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for UsedPodName {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "node_name",
            "nodeName",
            "pod_name",
            "podName",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            NodeName,
            PodName,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "nodeName" | "node_name" => Ok(GeneratedField::NodeName),
                            "podName" | "pod_name" => Ok(GeneratedField::PodName),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = UsedPodName;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.UsedPodName")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<UsedPodName, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut node_name__ = None;
                let mut pod_name__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::NodeName => {
                            if node_name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("nodeName"));
                            }
                            node_name__ = Some(map_.next_value()?);
                        }
                        GeneratedField::PodName => {
                            if pod_name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("podName"));
                            }
                            pod_name__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(UsedPodName {
                    node_name: node_name__.unwrap_or_default(),
                    pod_name: pod_name__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.UsedPodName", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Verdict {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        let variant = match self {
            Self::Unspecified => "VERDICT_UNSPECIFIED",
            Self::Apply => "VERDICT_APPLY",
            Self::StatusOnly => "VERDICT_STATUS_ONLY",
            Self::Stale => "VERDICT_STALE",
            Self::Noop => "VERDICT_NOOP",
        };
        serializer.serialize_str(variant)
    }
}
impl<'de> serde::Deserialize<'de> for Verdict {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "VERDICT_UNSPECIFIED",
            "VERDICT_APPLY",
            "VERDICT_STATUS_ONLY",
            "VERDICT_STALE",
            "VERDICT_NOOP",
        ];

        struct GeneratedVisitor;

        impl serde::de::Visitor<'_> for GeneratedVisitor {
            type Value = Verdict;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(formatter, "expected one of: {:?}", &FIELDS)
            }

            fn visit_i64<E>(self, v: i64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Signed(v), &self)
                    })
            }

            fn visit_u64<E>(self, v: u64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Unsigned(v), &self)
                    })
            }

            fn visit_str<E>(self, value: &str) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                match value {
                    "VERDICT_UNSPECIFIED" => Ok(Verdict::Unspecified),
                    "VERDICT_APPLY" => Ok(Verdict::Apply),
                    "VERDICT_STATUS_ONLY" => Ok(Verdict::StatusOnly),
                    "VERDICT_STALE" => Ok(Verdict::Stale),
                    "VERDICT_NOOP" => Ok(Verdict::Noop),
                    _ => Err(serde::de::Error::unknown_variant(value, FIELDS)),
                }
            }
        }
        deserializer.deserialize_any(GeneratedVisitor)
    }
}
impl serde::Serialize for VerdictCall {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.address.is_empty() {
            len += 1;
        }
        if self.tls {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.VerdictCall", len)?;
        if !self.address.is_empty() {
            struct_ser.serialize_field("address", &self.address)?;
        }
        if self.tls {
            struct_ser.serialize_field("tls", &self.tls)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for VerdictCall {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "address",
            "tls",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Address,
            Tls,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "address" => Ok(GeneratedField::Address),
                            "tls" => Ok(GeneratedField::Tls),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = VerdictCall;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.VerdictCall")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<VerdictCall, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut address__ = None;
                let mut tls__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Address => {
                            if address__.is_some() {
                                return Err(serde::de::Error::duplicate_field("address"));
                            }
                            address__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Tls => {
                            if tls__.is_some() {
                                return Err(serde::de::Error::duplicate_field("tls"));
                            }
                            tls__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(VerdictCall {
                    address: address__.unwrap_or_default(),
                    tls: tls__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.VerdictCall", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Warning {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.kind.is_empty() {
            len += 1;
        }
        if !self.name.is_empty() {
            len += 1;
        }
        if !self.message.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.Warning", len)?;
        if !self.kind.is_empty() {
            struct_ser.serialize_field("kind", &self.kind)?;
        }
        if !self.name.is_empty() {
            struct_ser.serialize_field("name", &self.name)?;
        }
        if !self.message.is_empty() {
            struct_ser.serialize_field("message", &self.message)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Warning {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "kind",
            "name",
            "message",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Kind,
            Name,
            Message,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "kind" => Ok(GeneratedField::Kind),
                            "name" => Ok(GeneratedField::Name),
                            "message" => Ok(GeneratedField::Message),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Warning;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.Warning")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Warning, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut kind__ = None;
                let mut name__ = None;
                let mut message__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Kind => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("kind"));
                            }
                            kind__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Name => {
                            if name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("name"));
                            }
                            name__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Message => {
                            if message__.is_some() {
                                return Err(serde::de::Error::duplicate_field("message"));
                            }
                            message__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(Warning {
                    kind: kind__.unwrap_or_default(),
                    name: name__.unwrap_or_default(),
                    message: message__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.Warning", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for WebhookCall {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.url.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.WebhookCall", len)?;
        if !self.url.is_empty() {
            struct_ser.serialize_field("url", &self.url)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for WebhookCall {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "url",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Url,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "url" => Ok(GeneratedField::Url),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = WebhookCall;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.WebhookCall")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<WebhookCall, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut url__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Url => {
                            if url__.is_some() {
                                return Err(serde::de::Error::duplicate_field("url"));
                            }
                            url__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(WebhookCall {
                    url: url__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.WebhookCall", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Workload {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.kind.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.Workload", len)?;
        if let Some(v) = self.kind.as_ref() {
            match v {
                workload::Kind::DaemonSet(v) => {
                    struct_ser.serialize_field("daemonSet", v)?;
                }
                workload::Kind::ReplicaSet(v) => {
                    struct_ser.serialize_field("replicaSet", v)?;
                }
                workload::Kind::Deployment(v) => {
                    struct_ser.serialize_field("deployment", v)?;
                }
            }
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Workload {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "daemon_set",
            "daemonSet",
            "replica_set",
            "replicaSet",
            "deployment",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            DaemonSet,
            ReplicaSet,
            Deployment,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "daemonSet" | "daemon_set" => Ok(GeneratedField::DaemonSet),
                            "replicaSet" | "replica_set" => Ok(GeneratedField::ReplicaSet),
                            "deployment" => Ok(GeneratedField::Deployment),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Workload;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.Workload")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Workload, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut kind__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::DaemonSet => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("daemonSet"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(workload::Kind::DaemonSet)
;
                        }
                        GeneratedField::ReplicaSet => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("replicaSet"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(workload::Kind::ReplicaSet)
;
                        }
                        GeneratedField::Deployment => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("deployment"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(workload::Kind::Deployment)
;
                        }
                    }
                }
                Ok(Workload {
                    kind: kind__,
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.Workload", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for WorkloadExplanation {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.message.is_empty() {
            len += 1;
        }
        if !self.details.is_empty() {
            len += 1;
        }
        if !self.replica_sets.is_empty() {
            len += 1;
        }
        if !self.pods.is_empty() {
            len += 1;
        }
        if self.more_pods != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.WorkloadExplanation", len)?;
        if !self.message.is_empty() {
            struct_ser.serialize_field("message", &self.message)?;
        }
        if !self.details.is_empty() {
            struct_ser.serialize_field("details", &self.details)?;
        }
        if !self.replica_sets.is_empty() {
            struct_ser.serialize_field("replicaSets", &self.replica_sets)?;
        }
        if !self.pods.is_empty() {
            struct_ser.serialize_field("pods", &self.pods)?;
        }
        if self.more_pods != 0 {
            struct_ser.serialize_field("morePods", &self.more_pods)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for WorkloadExplanation {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "message",
            "details",
            "replica_sets",
            "replicaSets",
            "pods",
            "more_pods",
            "morePods",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Message,
            Details,
            ReplicaSets,
            Pods,
            MorePods,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "message" => Ok(GeneratedField::Message),
                            "details" => Ok(GeneratedField::Details),
                            "replicaSets" | "replica_sets" => Ok(GeneratedField::ReplicaSets),
                            "pods" => Ok(GeneratedField::Pods),
                            "morePods" | "more_pods" => Ok(GeneratedField::MorePods),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = WorkloadExplanation;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.WorkloadExplanation")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<WorkloadExplanation, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut message__ = None;
                let mut details__ = None;
                let mut replica_sets__ = None;
                let mut pods__ = None;
                let mut more_pods__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Message => {
                            if message__.is_some() {
                                return Err(serde::de::Error::duplicate_field("message"));
                            }
                            message__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Details => {
                            if details__.is_some() {
                                return Err(serde::de::Error::duplicate_field("details"));
                            }
                            details__ = Some(map_.next_value()?);
                        }
                        GeneratedField::ReplicaSets => {
                            if replica_sets__.is_some() {
                                return Err(serde::de::Error::duplicate_field("replicaSets"));
                            }
                            replica_sets__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Pods => {
                            if pods__.is_some() {
                                return Err(serde::de::Error::duplicate_field("pods"));
                            }
                            pods__ = Some(map_.next_value()?);
                        }
                        GeneratedField::MorePods => {
                            if more_pods__.is_some() {
                                return Err(serde::de::Error::duplicate_field("morePods"));
                            }
                            more_pods__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                    }
                }
                Ok(WorkloadExplanation {
                    message: message__.unwrap_or_default(),
                    details: details__.unwrap_or_default(),
                    replica_sets: replica_sets__.unwrap_or_default(),
                    pods: pods__.unwrap_or_default(),
                    more_pods: more_pods__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.WorkloadExplanation", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for WorkloadMode {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        let variant = match self {
            Self::Unspecified => "WORKLOAD_MODE_UNSPECIFIED",
            Self::Observe => "WORKLOAD_MODE_OBSERVE",
            Self::Own => "WORKLOAD_MODE_OWN",
            Self::Companion => "WORKLOAD_MODE_COMPANION",
        };
        serializer.serialize_str(variant)
    }
}
impl<'de> serde::Deserialize<'de> for WorkloadMode {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "WORKLOAD_MODE_UNSPECIFIED",
            "WORKLOAD_MODE_OBSERVE",
            "WORKLOAD_MODE_OWN",
            "WORKLOAD_MODE_COMPANION",
        ];

        struct GeneratedVisitor;

        impl serde::de::Visitor<'_> for GeneratedVisitor {
            type Value = WorkloadMode;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(formatter, "expected one of: {:?}", &FIELDS)
            }

            fn visit_i64<E>(self, v: i64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Signed(v), &self)
                    })
            }

            fn visit_u64<E>(self, v: u64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Unsigned(v), &self)
                    })
            }

            fn visit_str<E>(self, value: &str) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                match value {
                    "WORKLOAD_MODE_UNSPECIFIED" => Ok(WorkloadMode::Unspecified),
                    "WORKLOAD_MODE_OBSERVE" => Ok(WorkloadMode::Observe),
                    "WORKLOAD_MODE_OWN" => Ok(WorkloadMode::Own),
                    "WORKLOAD_MODE_COMPANION" => Ok(WorkloadMode::Companion),
                    _ => Err(serde::de::Error::unknown_variant(value, FIELDS)),
                }
            }
        }
        deserializer.deserialize_any(GeneratedVisitor)
    }
}
impl serde::Serialize for WorkloadReference {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.kind.is_empty() {
            len += 1;
        }
        if !self.namespace.is_empty() {
            len += 1;
        }
        if !self.name.is_empty() {
            len += 1;
        }
        if !self.uid.is_empty() {
            len += 1;
        }
        if !self.resource_version.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.WorkloadReference", len)?;
        if !self.kind.is_empty() {
            struct_ser.serialize_field("kind", &self.kind)?;
        }
        if !self.namespace.is_empty() {
            struct_ser.serialize_field("namespace", &self.namespace)?;
        }
        if !self.name.is_empty() {
            struct_ser.serialize_field("name", &self.name)?;
        }
        if !self.uid.is_empty() {
            struct_ser.serialize_field("uid", &self.uid)?;
        }
        if !self.resource_version.is_empty() {
            struct_ser.serialize_field("resourceVersion", &self.resource_version)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for WorkloadReference {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "kind",
            "namespace",
            "name",
            "uid",
            "resource_version",
            "resourceVersion",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Kind,
            Namespace,
            Name,
            Uid,
            ResourceVersion,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "kind" => Ok(GeneratedField::Kind),
                            "namespace" => Ok(GeneratedField::Namespace),
                            "name" => Ok(GeneratedField::Name),
                            "uid" => Ok(GeneratedField::Uid),
                            "resourceVersion" | "resource_version" => Ok(GeneratedField::ResourceVersion),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = WorkloadReference;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.WorkloadReference")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<WorkloadReference, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut kind__ = None;
                let mut namespace__ = None;
                let mut name__ = None;
                let mut uid__ = None;
                let mut resource_version__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Kind => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("kind"));
                            }
                            kind__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Namespace => {
                            if namespace__.is_some() {
                                return Err(serde::de::Error::duplicate_field("namespace"));
                            }
                            namespace__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Name => {
                            if name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("name"));
                            }
                            name__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Uid => {
                            if uid__.is_some() {
                                return Err(serde::de::Error::duplicate_field("uid"));
                            }
                            uid__ = Some(map_.next_value()?);
                        }
                        GeneratedField::ResourceVersion => {
                            if resource_version__.is_some() {
                                return Err(serde::de::Error::duplicate_field("resourceVersion"));
                            }
                            resource_version__ = Some(map_.next_value()?);
                        }
                    }
                }
                Ok(WorkloadReference {
                    kind: kind__.unwrap_or_default(),
                    namespace: namespace__.unwrap_or_default(),
                    name: name__.unwrap_or_default(),
                    uid: uid__.unwrap_or_default(),
                    resource_version: resource_version__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.WorkloadReference", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for WorkloadStatus {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.kind.is_empty() {
            len += 1;
        }
        if !self.namespace.is_empty() {
            len += 1;
        }
        if !self.name.is_empty() {
            len += 1;
        }
        if !self.uid.is_empty() {
            len += 1;
        }
        if self.observed_at.is_some() {
            len += 1;
        }
        if self.state != 0 {
            len += 1;
        }
        if !self.message.is_empty() {
            len += 1;
        }
        if self.strategy.is_some() {
            len += 1;
        }
        if !self.revisions.is_empty() {
            len += 1;
        }
        if self.counts.is_some() {
            len += 1;
        }
        if self.started_at.is_some() {
            len += 1;
        }
        if self.stuck_since.is_some() {
            len += 1;
        }
        if self.ready_per_minute != 0. {
            len += 1;
        }
        if self.time_left.is_some() {
            len += 1;
        }
        if !self.causes.is_empty() {
            len += 1;
        }
        if !self.nodes.is_empty() {
            len += 1;
        }
        if !self.pods.is_empty() {
            len += 1;
        }
        if self.last_refusal.is_some() {
            len += 1;
        }
        if !self.writers.is_empty() {
            len += 1;
        }
        if !self.next.is_empty() {
            len += 1;
        }
        if self.mode != 0 {
            len += 1;
        }
        if !self.second_owner.is_empty() {
            len += 1;
        }
        if self.policy.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.WorkloadStatus", len)?;
        if !self.kind.is_empty() {
            struct_ser.serialize_field("kind", &self.kind)?;
        }
        if !self.namespace.is_empty() {
            struct_ser.serialize_field("namespace", &self.namespace)?;
        }
        if !self.name.is_empty() {
            struct_ser.serialize_field("name", &self.name)?;
        }
        if !self.uid.is_empty() {
            struct_ser.serialize_field("uid", &self.uid)?;
        }
        if let Some(v) = self.observed_at.as_ref() {
            struct_ser.serialize_field("observedAt", v)?;
        }
        if self.state != 0 {
            let v = RolloutState::try_from(self.state)
                .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", self.state)))?;
            struct_ser.serialize_field("state", &v)?;
        }
        if !self.message.is_empty() {
            struct_ser.serialize_field("message", &self.message)?;
        }
        if let Some(v) = self.strategy.as_ref() {
            struct_ser.serialize_field("strategy", v)?;
        }
        if !self.revisions.is_empty() {
            struct_ser.serialize_field("revisions", &self.revisions)?;
        }
        if let Some(v) = self.counts.as_ref() {
            struct_ser.serialize_field("counts", v)?;
        }
        if let Some(v) = self.started_at.as_ref() {
            struct_ser.serialize_field("startedAt", v)?;
        }
        if let Some(v) = self.stuck_since.as_ref() {
            struct_ser.serialize_field("stuckSince", v)?;
        }
        if self.ready_per_minute != 0. {
            struct_ser.serialize_field("readyPerMinute", &self.ready_per_minute)?;
        }
        if let Some(v) = self.time_left.as_ref() {
            struct_ser.serialize_field("timeLeft", v)?;
        }
        if !self.causes.is_empty() {
            struct_ser.serialize_field("causes", &self.causes)?;
        }
        if !self.nodes.is_empty() {
            struct_ser.serialize_field("nodes", &self.nodes)?;
        }
        if !self.pods.is_empty() {
            struct_ser.serialize_field("pods", &self.pods)?;
        }
        if let Some(v) = self.last_refusal.as_ref() {
            struct_ser.serialize_field("lastRefusal", v)?;
        }
        if !self.writers.is_empty() {
            struct_ser.serialize_field("writers", &self.writers)?;
        }
        if !self.next.is_empty() {
            struct_ser.serialize_field("next", &self.next)?;
        }
        if self.mode != 0 {
            let v = WorkloadMode::try_from(self.mode)
                .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", self.mode)))?;
            struct_ser.serialize_field("mode", &v)?;
        }
        if !self.second_owner.is_empty() {
            struct_ser.serialize_field("secondOwner", &self.second_owner)?;
        }
        if let Some(v) = self.policy.as_ref() {
            struct_ser.serialize_field("policy", v)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for WorkloadStatus {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "kind",
            "namespace",
            "name",
            "uid",
            "observed_at",
            "observedAt",
            "state",
            "message",
            "strategy",
            "revisions",
            "counts",
            "started_at",
            "startedAt",
            "stuck_since",
            "stuckSince",
            "ready_per_minute",
            "readyPerMinute",
            "time_left",
            "timeLeft",
            "causes",
            "nodes",
            "pods",
            "last_refusal",
            "lastRefusal",
            "writers",
            "next",
            "mode",
            "second_owner",
            "secondOwner",
            "policy",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Kind,
            Namespace,
            Name,
            Uid,
            ObservedAt,
            State,
            Message,
            Strategy,
            Revisions,
            Counts,
            StartedAt,
            StuckSince,
            ReadyPerMinute,
            TimeLeft,
            Causes,
            Nodes,
            Pods,
            LastRefusal,
            Writers,
            Next,
            Mode,
            SecondOwner,
            Policy,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "kind" => Ok(GeneratedField::Kind),
                            "namespace" => Ok(GeneratedField::Namespace),
                            "name" => Ok(GeneratedField::Name),
                            "uid" => Ok(GeneratedField::Uid),
                            "observedAt" | "observed_at" => Ok(GeneratedField::ObservedAt),
                            "state" => Ok(GeneratedField::State),
                            "message" => Ok(GeneratedField::Message),
                            "strategy" => Ok(GeneratedField::Strategy),
                            "revisions" => Ok(GeneratedField::Revisions),
                            "counts" => Ok(GeneratedField::Counts),
                            "startedAt" | "started_at" => Ok(GeneratedField::StartedAt),
                            "stuckSince" | "stuck_since" => Ok(GeneratedField::StuckSince),
                            "readyPerMinute" | "ready_per_minute" => Ok(GeneratedField::ReadyPerMinute),
                            "timeLeft" | "time_left" => Ok(GeneratedField::TimeLeft),
                            "causes" => Ok(GeneratedField::Causes),
                            "nodes" => Ok(GeneratedField::Nodes),
                            "pods" => Ok(GeneratedField::Pods),
                            "lastRefusal" | "last_refusal" => Ok(GeneratedField::LastRefusal),
                            "writers" => Ok(GeneratedField::Writers),
                            "next" => Ok(GeneratedField::Next),
                            "mode" => Ok(GeneratedField::Mode),
                            "secondOwner" | "second_owner" => Ok(GeneratedField::SecondOwner),
                            "policy" => Ok(GeneratedField::Policy),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = WorkloadStatus;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.WorkloadStatus")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<WorkloadStatus, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut kind__ = None;
                let mut namespace__ = None;
                let mut name__ = None;
                let mut uid__ = None;
                let mut observed_at__ = None;
                let mut state__ = None;
                let mut message__ = None;
                let mut strategy__ = None;
                let mut revisions__ = None;
                let mut counts__ = None;
                let mut started_at__ = None;
                let mut stuck_since__ = None;
                let mut ready_per_minute__ = None;
                let mut time_left__ = None;
                let mut causes__ = None;
                let mut nodes__ = None;
                let mut pods__ = None;
                let mut last_refusal__ = None;
                let mut writers__ = None;
                let mut next__ = None;
                let mut mode__ = None;
                let mut second_owner__ = None;
                let mut policy__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Kind => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("kind"));
                            }
                            kind__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Namespace => {
                            if namespace__.is_some() {
                                return Err(serde::de::Error::duplicate_field("namespace"));
                            }
                            namespace__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Name => {
                            if name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("name"));
                            }
                            name__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Uid => {
                            if uid__.is_some() {
                                return Err(serde::de::Error::duplicate_field("uid"));
                            }
                            uid__ = Some(map_.next_value()?);
                        }
                        GeneratedField::ObservedAt => {
                            if observed_at__.is_some() {
                                return Err(serde::de::Error::duplicate_field("observedAt"));
                            }
                            observed_at__ = map_.next_value()?;
                        }
                        GeneratedField::State => {
                            if state__.is_some() {
                                return Err(serde::de::Error::duplicate_field("state"));
                            }
                            state__ = Some(map_.next_value::<RolloutState>()? as i32);
                        }
                        GeneratedField::Message => {
                            if message__.is_some() {
                                return Err(serde::de::Error::duplicate_field("message"));
                            }
                            message__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Strategy => {
                            if strategy__.is_some() {
                                return Err(serde::de::Error::duplicate_field("strategy"));
                            }
                            strategy__ = map_.next_value()?;
                        }
                        GeneratedField::Revisions => {
                            if revisions__.is_some() {
                                return Err(serde::de::Error::duplicate_field("revisions"));
                            }
                            revisions__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Counts => {
                            if counts__.is_some() {
                                return Err(serde::de::Error::duplicate_field("counts"));
                            }
                            counts__ = map_.next_value()?;
                        }
                        GeneratedField::StartedAt => {
                            if started_at__.is_some() {
                                return Err(serde::de::Error::duplicate_field("startedAt"));
                            }
                            started_at__ = map_.next_value()?;
                        }
                        GeneratedField::StuckSince => {
                            if stuck_since__.is_some() {
                                return Err(serde::de::Error::duplicate_field("stuckSince"));
                            }
                            stuck_since__ = map_.next_value()?;
                        }
                        GeneratedField::ReadyPerMinute => {
                            if ready_per_minute__.is_some() {
                                return Err(serde::de::Error::duplicate_field("readyPerMinute"));
                            }
                            ready_per_minute__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::TimeLeft => {
                            if time_left__.is_some() {
                                return Err(serde::de::Error::duplicate_field("timeLeft"));
                            }
                            time_left__ = map_.next_value()?;
                        }
                        GeneratedField::Causes => {
                            if causes__.is_some() {
                                return Err(serde::de::Error::duplicate_field("causes"));
                            }
                            causes__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Nodes => {
                            if nodes__.is_some() {
                                return Err(serde::de::Error::duplicate_field("nodes"));
                            }
                            nodes__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Pods => {
                            if pods__.is_some() {
                                return Err(serde::de::Error::duplicate_field("pods"));
                            }
                            pods__ = Some(map_.next_value()?);
                        }
                        GeneratedField::LastRefusal => {
                            if last_refusal__.is_some() {
                                return Err(serde::de::Error::duplicate_field("lastRefusal"));
                            }
                            last_refusal__ = map_.next_value()?;
                        }
                        GeneratedField::Writers => {
                            if writers__.is_some() {
                                return Err(serde::de::Error::duplicate_field("writers"));
                            }
                            writers__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Next => {
                            if next__.is_some() {
                                return Err(serde::de::Error::duplicate_field("next"));
                            }
                            next__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Mode => {
                            if mode__.is_some() {
                                return Err(serde::de::Error::duplicate_field("mode"));
                            }
                            mode__ = Some(map_.next_value::<WorkloadMode>()? as i32);
                        }
                        GeneratedField::SecondOwner => {
                            if second_owner__.is_some() {
                                return Err(serde::de::Error::duplicate_field("secondOwner"));
                            }
                            second_owner__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Policy => {
                            if policy__.is_some() {
                                return Err(serde::de::Error::duplicate_field("policy"));
                            }
                            policy__ = map_.next_value()?;
                        }
                    }
                }
                Ok(WorkloadStatus {
                    kind: kind__.unwrap_or_default(),
                    namespace: namespace__.unwrap_or_default(),
                    name: name__.unwrap_or_default(),
                    uid: uid__.unwrap_or_default(),
                    observed_at: observed_at__,
                    state: state__.unwrap_or_default(),
                    message: message__.unwrap_or_default(),
                    strategy: strategy__,
                    revisions: revisions__.unwrap_or_default(),
                    counts: counts__,
                    started_at: started_at__,
                    stuck_since: stuck_since__,
                    ready_per_minute: ready_per_minute__.unwrap_or_default(),
                    time_left: time_left__,
                    causes: causes__.unwrap_or_default(),
                    nodes: nodes__.unwrap_or_default(),
                    pods: pods__.unwrap_or_default(),
                    last_refusal: last_refusal__,
                    writers: writers__.unwrap_or_default(),
                    next: next__.unwrap_or_default(),
                    mode: mode__.unwrap_or_default(),
                    second_owner: second_owner__.unwrap_or_default(),
                    policy: policy__,
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.WorkloadStatus", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Writer {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.manager.is_empty() {
            len += 1;
        }
        if self.at.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("nodewise.v1.Writer", len)?;
        if !self.manager.is_empty() {
            struct_ser.serialize_field("manager", &self.manager)?;
        }
        if let Some(v) = self.at.as_ref() {
            struct_ser.serialize_field("at", v)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Writer {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "manager",
            "at",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Manager,
            At,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "manager" => Ok(GeneratedField::Manager),
                            "at" => Ok(GeneratedField::At),
                            _ => Err(serde::de::Error::unknown_field(value, FIELDS)),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Writer;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct nodewise.v1.Writer")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Writer, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut manager__ = None;
                let mut at__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Manager => {
                            if manager__.is_some() {
                                return Err(serde::de::Error::duplicate_field("manager"));
                            }
                            manager__ = Some(map_.next_value()?);
                        }
                        GeneratedField::At => {
                            if at__.is_some() {
                                return Err(serde::de::Error::duplicate_field("at"));
                            }
                            at__ = map_.next_value()?;
                        }
                    }
                }
                Ok(Writer {
                    manager: manager__.unwrap_or_default(),
                    at: at__,
                })
            }
        }
        deserializer.deserialize_struct("nodewise.v1.Writer", FIELDS, GeneratedVisitor)
    }
}
